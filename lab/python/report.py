"""The summary as Markdown."""

from __future__ import annotations

import platform
from pathlib import Path

COLUMNS = {
    "ms_per_row": "ms per row, median",
    "cpu_ms_per_row": "CPU ms per row, best",
    "times_phex": "× phex exact at 256, CPU",
    "times_phex_same_batch": "× phex exact at this batch, CPU",
    "max_error": "max error",
    "mean_error": "mean error",
    "cpu_over_wall": "CPU / wall-clock time",
}


def short(value: float) -> str:
    """About two significant digits."""
    if value == 0.0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.2g}"


def markdown(results: dict) -> str:
    """The tables."""
    call = results["overhead"]
    sentence = (
        f"A call of `Model.marginals` on {call['rows']} rows of {call['labels']} labels "
        f"(`{call['method']}`, float32) takes {short(call['model_us'])} µs; "
    )
    if "model_over_rust" in call:
        ratio = call["model_over_rust"]
        sentence += f"the same call from Rust {short(call['rust_us'])} µs, a factor of {ratio:.3f}. "
    else:
        sentence += f"not compared with Rust: {call['rust_missing']}. "
    sentence += f"On no rows it takes {short(call['empty_us'])} µs.\n"
    lines = [f"# phex from Python\n\nMade by `{results['command']}`, {machine()}, one thread.\n", sentence]
    for case, what in results["models"].items():
        head = " | ".join(["implementation", "batch", *COLUMNS.values()])
        lines.append(f"## {case}: {what}\n\n| {head} |\n|---|{'---:|' * (1 + len(COLUMNS))}")
        for row in (row for row in results["rows"] if row["model"] == case):
            cells = [row["implementation"], str(row["batch"])]
            if "missing" in row:
                cells += [f"not run: {row['missing']}", *[""] * (len(COLUMNS) - 1)]
            else:
                cells += [short(row[key]) for key in COLUMNS]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def machine() -> str:
    """The name of the CPU."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown CPU"
