import pathlib
import re

import pytest

import eamp
from eamp.nn import MODELS
from eamp.report.citations import BIBTEX, KEYS_OF_MODELS, PAPER, cite


def keys(bibtex: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", bibtex, re.MULTILINE)


def test_the_papers_entry_comes_first_and_once() -> None:
    assert keys(cite()) == [PAPER]
    assert keys(cite("gcnii", PAPER)) == [PAPER, "chen2020simple"]
    assert keys(cite("entropic-gcn", "gcn", "kipf2017semi")) == [PAPER, "kipf2017semi"]


def test_the_models_that_have_citations_are_all_models() -> None:
    assert list(KEYS_OF_MODELS) == list(MODELS)  # the command line takes them for it


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_cited(name: str) -> None:
    assert keys(cite(name)) == list(dict.fromkeys([PAPER, *KEYS_OF_MODELS[name]]))


def test_models_are_cited_by_keys_that_exist() -> None:
    assert {key for cited in KEYS_OF_MODELS.values() for key in cited} <= set(BIBTEX)


def test_every_key_that_a_docstring_names_exists() -> None:
    source = pathlib.Path(eamp.__file__).parent
    named = {
        key
        for path in source.rglob("*.py")
        for key in re.findall(r"BibTeX key for ``eamp cite``: ``(\w+)``", path.read_text("utf-8"))
    }
    assert named
    assert named <= set(BIBTEX)


@pytest.mark.parametrize("key", BIBTEX)
def test_entries_are_well_formed(key: str) -> None:
    text = BIBTEX[key]
    assert keys(text) == [key]
    assert text.count("{") == text.count("}")
    assert text.isascii()  # BibTeX itself knows no other letters
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", text, re.MULTILINE))
    assert {"title", "author", "year"} <= set(fields)
    assert "booktitle" in fields or re.fullmatch(r"\d{4}\.\d{5}", fields["eprint"])
    assert re.search(r"\d{4}", key).group() == fields["year"]  # type: ignore[union-attr]
    first_author = fields["author"].split(",")[0]
    assert re.sub(r"\\v|\W", "", first_author).lower() == re.match(r"[a-z]+", key).group()  # type: ignore[union-attr]


def test_no_key_twice() -> None:
    source = pathlib.Path(eamp.__file__).with_name("report") / "citations.bib"
    assert keys(source.read_text("utf-8")) == list(BIBTEX)


def test_unknown_names_are_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"'gnc'.*gcn.*kipf2017semi"):
        cite("gcn", "gnc")
