// Names and focus that the theme leaves out: keyboards can reach a table that scrolls, and the search has a name.
function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) {
    each.tabIndex = 0;
    each.setAttribute("role", "region");
    each.setAttribute("aria-label", "Table");
  }
}
new MutationObserver(complete).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
complete();
