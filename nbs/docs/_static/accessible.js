// Names of two controls of the theme for screen readers: the search button by its whole text, which a narrow page hides; a toggle by its link.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button__button")) {
    button.setAttribute("aria-label", button.textContent.trim().replace(/\s+/g, " "));
  }
  for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const link = toggle.closest("li")?.querySelector("a");
    toggle.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
  }
});
