#include "cli/report/page_style.h"

#include "cli/report/theme.h"

namespace thalia::cli {

std::string page_style() {
  return page_colours() + picture_style() + R"(*{box-sizing:border-box}
body{margin:0;background:var(--surface);color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1{font-size:1.5rem;line-height:1.25;font-weight:650;margin:0;overflow-wrap:anywhere}
.lead{color:var(--muted);margin:.25rem 0 1.25rem;overflow-wrap:anywhere}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:0;padding:0}
nav a{color:var(--main);text-decoration:none}
nav a:hover,nav a:focus-visible{text-decoration:underline}
section{margin-top:2.5rem;border-top:1px solid var(--grid);padding-top:1.25rem}
h2{font-size:1.125rem;font-weight:650;margin:0 0 .75rem}
h3{font-size:.9375rem;font-weight:650;margin:1.5rem 0 .5rem}
p{margin:0 0 .75rem;max-width:46rem}
.note{color:var(--muted);font-size:.875rem}
.good{color:var(--good);font-weight:600}
.bad{color:var(--warn);font-weight:600}
dl{display:grid;grid-template-columns:9rem minmax(0,1fr);gap:.3rem 1.5rem;margin:0}
dt{color:var(--muted);grid-column:1}
dd{margin:0;grid-column:2;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.8125rem;line-height:1.4;
  font-variant-numeric:tabular-nums}
caption{caption-side:top;text-align:left;color:var(--muted);padding:0 0 .5rem}
th,td{padding:.3rem 1rem .3rem 0;text-align:left;vertical-align:baseline;white-space:nowrap;
  border-bottom:1px solid var(--grid)}
th:last-child,td:last-child{padding-right:0}
thead th{color:var(--muted);font-weight:600;vertical-align:bottom}
tbody th{font-weight:400}
.number{text-align:right}
.name{font-family:ui-monospace,"SFMono-Regular",Menlo,"DejaVu Sans Mono",monospace;font-size:.75rem;
  white-space:normal;overflow-wrap:anywhere;min-width:13rem}
.wrap{white-space:normal;overflow-wrap:anywhere;min-width:9rem}
.quiet{color:var(--muted)}
.bar{width:34%;min-width:7rem}
.bar i{display:block;height:.5rem;min-width:1px;background:var(--main)}
th button{all:unset;cursor:pointer}
th button:hover,th button:focus-visible{color:var(--ink);text-decoration:underline}
th[aria-sort] button{color:var(--ink)}
th[aria-sort=ascending] button::after{content:" ↑"}
th[aria-sort=descending] button::after{content:" ↓"}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(13.5rem,1fr));gap:1.75rem 1.5rem;
  list-style:none;margin:1rem 0 0;padding:0}
.picture{display:block;max-width:100%;height:auto}
.panels .picture{width:100%;max-width:18rem}
.wide .picture{width:100%;min-width:40rem;max-width:60rem}
details summary{cursor:pointer;color:var(--main)}
pre{margin:.75rem 0 0;padding:1rem;background:var(--raised);border-radius:6px;font-size:.75rem;
  line-height:1.5;white-space:pre-wrap;overflow-wrap:anywhere;
  font-family:ui-monospace,"SFMono-Regular",Menlo,"DejaVu Sans Mono",monospace}
footer{margin-top:3rem;color:var(--muted);font-size:.8125rem}
@media (max-width:36rem){
main{padding:1.5rem 1rem 3rem}
dl{display:block}
dd+dt{margin-top:.6rem}
.panels{grid-template-columns:minmax(0,1fr)}
.panels .picture{max-width:17rem}
.name{min-width:8rem}
.layers .bar{display:none}
.bar{min-width:5rem}
}
@media print{
:root{--surface:#fff;--ink:#000;--muted:#444;--grid:#ccc;--raised:#f6f6f6}
body{font-size:10pt}
main{max-width:none;padding:0}
nav{display:none}
.scroll{overflow:visible}
.wide .picture{min-width:0}
th,td{white-space:normal;padding-right:.5rem}
h2,h3,caption{break-after:avoid}
tr,li,.picture{break-inside:avoid}
}
)";
}

std::string page_script() {
  return R"(for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    if (heading.tagName !== "TH") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    const numbers = heading.classList.contains("number");
    const key = row => {
      const cell = row.cells[column];
      return numbers ? Number(cell.dataset.value ?? NaN) : cell.textContent;
    };
    const compare = numbers ? (a, b) => a - b
        : (a, b) => a.localeCompare(b, undefined, {numeric: true});
    button.addEventListener("click", () => {
      // The largest numbers first, names from A on; once more the other way round.
      const before = heading.getAttribute("aria-sort");
      const rising = before ? before === "descending" : !numbers;
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map(row => [key(row), row]);
      const known = rows.filter(([value]) => !Number.isNaN(value));
      known.sort(([a], [b]) => rising ? compare(a, b) : compare(b, a));
      const unknown = rows.filter(([value]) => Number.isNaN(value));
      table.tBodies[0].append(...[...known, ...unknown].map(([, row]) => row));
    });
  });
}
)";
}

}  // namespace thalia::cli
