import json

import altair as alt
import pandas as pd

from eamp.report.colours import looks
from eamp.report.figure import Figure, Panel, disk_spec


def test_legends_name_every_line_in_full() -> None:
    name = "A network of one's own, with a name that is longer than any legend would like it to be"
    chart = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x")
    figure = Figure("key", "title", "caption", (Panel("", chart),), looks([name]))
    assert name in json.dumps(disk_spec(figure), ensure_ascii=False)
