"""Put the tables of ``accuracies.csv`` and ``relations.csv`` into ``README.md``."""

from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
VARIANTS = {
    "without": "plain",
    "with": "with the step, T = 1",
    "linear": "T = ∞",
    "permuted": "T = 1, permuted",
    "residual": "residual, x + conv(x)",
}


def accuracies() -> str:
    """Return test accuracies in percent, mean ± deviation over seeds, by depth."""
    runs = pd.read_csv(HERE / "accuracies.csv")
    runs["step"] = runs["step"].map(VARIANTS)
    depths = sorted(runs["depth"].unique())
    lines = ["| layers | " + " | ".join(map(str, depths)) + " |"]
    lines.append("|---|" + "---|" * len(depths))
    for variant in VARIANTS.values():
        part = runs[runs["step"] == variant]
        if part.empty:
            continue
        cells = []
        for depth in depths:
            values = 100 * part.loc[part["depth"] == depth, "test_accuracy"]
            spread = f" ± {values.std():.1f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.1f}{spread} ({len(values)})")
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def relations() -> str:
    """Return the verdict and the relative energy of every relation, for the first seed."""
    found = pd.read_csv(HERE / "relations.csv", keep_default_na=False, dtype=str)
    lines = ["| layers | network | relation | verdict | energy, first → last layer |"]
    lines.append("|---|---|---|---|---|")
    for row in found.to_dict("records"):
        verdict = f"{row['kind']} from layer {row['layer']} on" if row["layer"] else row["kind"]
        cells = [row["depth"], VARIANTS[row["step"]], row["relation"], verdict]
        lines.append("| " + " | ".join([*cells, f"{row['first']} → {row['last']}"]) + " |")
    return "\n".join(lines)


def filled(page: str) -> str:
    """Return a page with both tables in place of the old ones."""
    for name, table in (("accuracies", accuracies()), ("relations", relations())):
        start, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        before, _, rest = page.partition(start)
        page = before + start + table + end + rest.partition(end)[2]
    return page


if __name__ == "__main__":
    path = HERE / "README.md"
    path.write_text(filled(path.read_text("utf-8")), "utf-8")
