// Order of search results: whole words before parts of words, titles before text, guides before notebooks and the API.
const PLACES = [["docs/reference/glossary", 3], ["docs/tutorials/", 12], ["docs/howto/", 12], ["docs/explanation/", 12], ["docs/reference/", 11], ["docs/results/", 4]];

var Scorer = {  // a var: searchtools.js, which is loaded before, declares one, too
  score: ([docname, title, anchor, description, score]) =>
    score + (PLACES.find(([place]) => docname.startsWith(place)) || ["", 0])[1],
  objNameMatch: 11,
  objPartialMatch: 0,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 20,
  partialTitle: 2,
  term: 8,
  partialTerm: -20,
};
