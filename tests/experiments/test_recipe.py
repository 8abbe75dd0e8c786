from pathlib import Path

import pytest

from eamp.experiments.recipe import RecipeError, load_recipe

ROOT = Path(__file__).parents[2]

GOOD = """
data: [csbm, grid]
depth: [2, 4]
seeds: 2
changes: {learning_rate: 1e-3}
runs:
  - {model: gcn}
  - {model: gcn, name: GCN, data: csbm, depth: 2, entropy: {weight: 3}}
  - {model: gcn, name: GCN, data: csbm, depth: 2, entropy: {weight: 3}}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "a recipe.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_lists_are_gone_through_and_equal_cells_are_one(tmp_path: Path) -> None:
    name, cells = load_recipe(written(tmp_path, GOOD))
    assert name == "a recipe"
    assert [(cell.name, cell.data, cell.depth) for cell in cells if cell.seed == 0] == [
        ("gcn", "csbm", 2),
        ("gcn", "csbm", 4),
        ("gcn", "grid", 2),
        ("gcn", "grid", 4),
        ("GCN", "csbm", 2),
    ]
    assert [cell.seed for cell in cells] == [0] * 5 + [1] * 5  # every network before a second seed
    assert len({cell.key for cell in cells}) == 10
    assert cells[4].entropy == {"weight": 3}


def test_a_number_without_a_point_is_a_number(tmp_path: Path) -> None:
    _, cells = load_recipe(written(tmp_path, GOOD))
    assert {cell.rules.learning_rate for cell in cells} == {0.001}  # PyYAML reads 1e-3 as a string


def test_a_name_of_its_own(tmp_path: Path) -> None:
    recipe = written(tmp_path, "name: mine\nruns: [{model: gcn, data: csbm, depth: 2}]")
    assert load_recipe(recipe)[0] == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: {model: gcn}", "must be a mapping with a list of `runs`"),
        ("runs: []", "must be a mapping with a list of `runs`"),
        ("[1, 2", "cannot be read as YAML"),
        ("runs: [gcn]", "run 1 of .* must be a mapping, as in {model: gcn}, but is 'gcn'"),
        ("runs: [{model: gcn, data: csbm}]", "depth must be given"),
        (
            "runs: [{model: gcn, data: csbm, depth: 2, deph: 3}]",
            "there is no setting deph; there are model, data, .*, split, task, seeds, splits",
        ),
        ("runs: [{model: gnc, data: csbm, depth: 2}]", "no model named 'gnc'; there are gcn"),
        (
            "protocol: papr\nruns: [{model: gcn, data: csbm, depth: 2}]",
            "no protocol named 'papr'; there are paper, standard",
        ),
        (
            "changes: {epoch: 3}\nruns: [{model: gcn, data: csbm, depth: 2}]",
            "a protocol has no epoch; it has select, epochs",
        ),
        (
            "seeds: many\nruns: [{model: gcn, data: csbm, depth: 2}]",
            r"`seeds` must be a whole number of at least 1, but is 'many'; .* `seed: \[0, 1, 2\]`",
        ),
        ("seeds: 0\nruns: [{model: gcn, data: csbm, depth: 2}]", "of at least 1, but is 0"),
        (
            "runs: [{model: gcn, data: csbm, depth: '2'}]",
            "`depth` must be a whole number, or a list of them, but is '2'",
        ),
        ("runs: [{model: gcn, data: csbm, depth: []}]", "depth is an empty list"),
        (
            "runs: [{model: gcn, data: csbm, depth: 2, width: true}]",
            "`width` must be a whole number, but is True",
        ),
        (
            "runs: [{model: gcn, data: csbm, depth: 2, entropy: 3}]",
            "`entropy` must be a mapping, as in .*, but is 3",
        ),
        (
            "runs: [{model: [gcn, g2], data: csbm, depth: 2}]",
            r"`model` must be a string, but is \['gcn', 'g2'\]",
        ),
        (
            "runs: [{model: gcn, data: csbm, depth: 2, options: {since: 2020-01-01}}]",
            "not JSON serializable",
        ),
    ],
)
def test_errors_say_what_came_and_what_was_expected(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="No such file"):
        load_recipe(tmp_path / "nothing.yaml")


def test_a_runs_own_seeds_are_its_seeds(tmp_path: Path) -> None:
    text = (
        "{data: csbm, depth: 2, seeds: 3, runs: "
        "[{model: gcn, seed: [7, 8]}, {model: g2}, {model: gcnii, seeds: 1}]}"
    )
    _, cells = load_recipe(written(tmp_path, text))
    assert {(cell.model, cell.seed) for cell in cells} == {
        ("gcn", 7),
        ("gcn", 8),
        ("g2", 0),
        ("g2", 1),
        ("g2", 2),
        ("gcnii", 0),
    }
    both = written(tmp_path, "runs: [{model: gcn, data: csbm, depth: 2, seeds: 2, seed: 3}]")
    with pytest.raises(RecipeError, match="`seeds` says how many and `seed` says which"):
        load_recipe(both)


def test_splits_are_listed_or_counted(tmp_path: Path) -> None:
    text = (
        "{data: csbm, depth: [2, 4], splits: 3, seeds: 2, runs: "
        "[{model: gcn}, {model: g2, split: [1, 7]}]}"
    )
    _, cells = load_recipe(written(tmp_path, text))
    assert [(cell.model, cell.depth, cell.split) for cell in cells if cell.seed == 0] == [
        ("gcn", 2, 0),
        ("gcn", 4, 0),
        ("gcn", 2, 1),
        ("gcn", 4, 1),
        ("g2", 2, 1),
        ("g2", 4, 1),
        ("gcn", 2, 2),
        ("gcn", 4, 2),
        ("g2", 2, 7),
        ("g2", 4, 7),
    ]
    assert [cell.seed for cell in cells] == [0] * 10 + [1] * 10


def test_cells_that_differ_in_name_alone_are_kept(tmp_path: Path) -> None:
    text = "{data: csbm, depth: 2, runs: [{model: gcn}, {model: gcn, name: again}, {model: gcn}]}"
    _, cells = load_recipe(written(tmp_path, text))
    assert [cell.name for cell in cells] == ["gcn", "again"]
    assert cells[0].key == cells[1].key


ONE_RUN = "runs: [{model: gcn, data: csbm, depth: 2}]"
LAUGHS = "\n".join(
    ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 10)]
)
MERGED = "\n".join(
    ["a0: &a0 {x: 1}"]
    + [f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}" for k in range(1, 10)]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"seeds: 1000000000\n{ONE_RUN}",
            "has 1,000,000,000 cells, and at most 1,000,000 .* fewer",
        ),
        (f"seeds: 1000000\nsplits: 2\n{ONE_RUN}", "2,000,000 cells, .* fewer seed, split"),
        (f"{LAUGHS}\n{ONE_RUN}", r"written out it has [\d,]+ values, and at most 1,000,000"),
        (f"{MERGED}\n{ONE_RUN}", r"written out it has [\d,]+ values, and at most 1,000,000"),
        ("&a {runs: [*a]}", "an alias .* stands inside of its own anchor"),
        ("&a {<<: *a, runs: [1]}", "an alias .* stands inside of its own anchor"),
        (f"runs: {'[' * 1500}", "nested too deeply"),
        (f"seeds: 2\nseeds: 3\n{ONE_RUN}", "`seeds` is there twice; keep one"),
        (
            "runs: [{model: gcn, data: csbm, depth: 2, depth: 3}]",
            "`depth` is there twice; .*line 1",
        ),
        (f"1: 2\na: b\n{ONE_RUN}", "there is no setting 1, a; there are model"),
        (f"seed: {'9' * 5000}\n{ONE_RUN}", "cannot be read as YAML: Exceeds the limit"),
        (f"name: 2020-13-45\n{ONE_RUN}", "cannot be read as YAML: month must be in 1..12"),
        ("", "must be a mapping with a list of `runs`"),
    ],
)
def test_slips_and_hostile_files_end_at_once(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        load_recipe(written(tmp_path, text))
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


def test_aliases_and_merged_keys_are_read(tmp_path: Path) -> None:
    text = (
        "{runs: [&a {model: gcn, data: &d csbm, depth: 2}, {<<: *a, depth: 3}, "
        "{model: g2, data: *d, depth: 4}]}"
    )
    _, cells = load_recipe(written(tmp_path, text))
    assert [(cell.model, cell.data, cell.depth) for cell in cells] == [
        ("gcn", "csbm", 2),
        ("gcn", "csbm", 3),
        ("g2", "csbm", 4),
    ]


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    assert load_recipe(str(written(tmp_path, ONE_RUN)))[0] == "a recipe"


@pytest.mark.parametrize(
    ("runs", "differ"),
    [
        ("[{model: gcn, width: 4}, {model: gcn, width: 64}]", "width"),
        ("[{model: gcn}, {model: gcn, seed: 5, options: {initial_gain: 2}}]", "options"),
        ("[{model: gcn, name: a}, {model: gcnii, name: a, dropout: 0.5}]", "model, dropout"),
    ],
)
def test_two_networks_of_one_name_are_refused(tmp_path: Path, runs: str, differ: str) -> None:
    recipe = written(tmp_path, f"data: csbm\ndepth: [2, 4]\nseeds: 2\nruns: {runs}")
    message = f"runs 1 and 2 of .* with depth 2, but differ in {differ}; .* Give each a `name`"
    with pytest.raises(RecipeError, match=message):
        load_recipe(recipe)


def test_one_name_may_stand_on_other_data_depths_seeds_and_splits(tmp_path: Path) -> None:
    runs = "{width: 4, data: grid}, {width: 8}, {width: 4, depth: 3}, {width: 8, seed: 5, split: 2}"
    recipe = written(tmp_path, f"model: gcn\ndata: csbm\ndepth: 2\nruns: [{runs}]")
    assert len(load_recipe(recipe)[1]) == 4


STORED = [*(ROOT / "docs").rglob("*.yaml"), *(ROOT / "src/eamp/paper/recipes").glob("*.yaml")]


@pytest.mark.parametrize("recipe", STORED, ids=lambda path: path.stem)
def test_every_stored_recipe_is_read(recipe: Path) -> None:
    assert load_recipe(recipe)[1]
