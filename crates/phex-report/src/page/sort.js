// Headers of label tables sort by their column, a second time the other way; a field filters long ones.
document.querySelectorAll("table.labels").forEach(function (table) {
  var body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  function key(row, column) {
    var cell = row.cells[column];
    return column === 0 ? cell.textContent : parseFloat(cell.dataset.value);
  }
  heads.forEach(function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", function () {
      // Numbers first sort downwards, names upwards.
      var first = column === 0 ? "ascending" : "descending";
      var second = column === 0 ? "descending" : "ascending";
      var way = head.getAttribute("aria-sort") === first ? second : first;
      var sign = way === "ascending" ? 1 : -1;
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", way);
      Array.from(body.rows).map(function (row) { return [key(row, column), row]; })
        .sort(function (a, b) {
          if (column === 0) return sign * a[0].localeCompare(b[0], undefined, {numeric: true});
          // Labels without a number come last either way.
          var missing = isNaN(a[0]) - isNaN(b[0]);
          return missing || sign * (a[0] - b[0]) || 0;
        })
        .forEach(function (pair) { body.appendChild(pair[1]); });
    });
  });
  if (body.rows.length < 20) return;
  var field = document.createElement("input");
  field.type = "search";
  field.className = "filter";
  field.placeholder = "filter labels";
  field.setAttribute("aria-label", "filter labels");
  field.addEventListener("input", function () {
    var wanted = field.value.toLowerCase();
    Array.from(body.rows).forEach(function (row) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
  });
  table.parentElement.before(field);
});
