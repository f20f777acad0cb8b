// j and k walk from one query to the next.
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const link = document.querySelector(`[data-step="${CSS.escape(event.key)}"]`);
  if (link) { event.preventDefault(); location.assign(link.href); }
});
