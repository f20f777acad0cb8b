// Lists: j and k walk along the lines, and filters leave nothing empty in the address. Without it they are plain forms.
(() => {
  "use strict";
  const lean = (form) => {
    for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
  };
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key)) return;
    if (document.querySelector("dialog[open]") || event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
    const links = [...document.querySelectorAll("[data-walk] tbody th a")];
    if (!links.length) return;
    event.preventDefault();
    const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = here < 0 ? (event.key === "j" ? 0 : links.length - 1) : here + (event.key === "j" ? 1 : -1);
    if (!links[next]) return;
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("htmx:configRequest", (event) => {
    if (!event.target.matches("[data-lean]")) return;
    const given = event.detail.parameters;
    for (const name of Object.keys(given)) if (given[name] === "") delete given[name];
  });
  // A choice that changes more of the page than its list asks for the page anew, and not for the list as well.
  document.addEventListener("input", (event) => { if (event.target.matches("[data-submit]")) event.stopPropagation(); }, true);
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-submit]")) return;
    lean(event.target.form);
    event.target.form.submit();
  });
  // Who comes back finds the fields usable again.
  addEventListener("pageshow", () => { for (const field of document.querySelectorAll("[data-lean] :disabled")) field.disabled = false; });
})();
