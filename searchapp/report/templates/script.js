"use strict";
// Headings of tables become buttons that sort: by numbers where all cells of the column are such, else by words.
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[0].querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    const words = document.createElement("span");
    words.append(...head.childNodes);
    button.append(words);
    head.append(button);
    button.addEventListener("click", () => sort(table, head));
  }
}

function sort(table, head) {
  const falling = head.getAttribute("aria-sort") !== "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [row.cells[head.cellIndex].textContent.trim(), row]);
  const number = (text) => Number(text.replace(/,/g, "").replace(/^</, ""));
  const numeric = rows.every(([text]) => text === "–" || (text !== "" && !Number.isNaN(number(text))));
  const words = new Intl.Collator(undefined, { numeric: true });
  rows.sort(([one], [other]) => {
    if (one === "–" || other === "–") return (one === "–") - (other === "–");
    return (numeric ? number(one) - number(other) : words.compare(one, other)) * (falling ? -1 : 1);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}
