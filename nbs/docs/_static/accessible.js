// Names of two controls of the theme for screen readers: the search button is named by its text, a toggle by the link that it belongs to.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button__button")) button.removeAttribute("aria-label");
  for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const link = toggle.closest("li")?.querySelector("a");
    toggle.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
  }
});
