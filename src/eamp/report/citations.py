"""BibTeX entries of the methods, measures, software and data, from ``citations.bib``."""

import re
import unicodedata
from importlib.resources import files

from eamp.spelling import did_you_mean

PAPER = "nazari2024entropy"
_FILE = files("eamp.report").joinpath("citations.bib").read_text(encoding="utf-8").strip()
BIBTEX: dict[str, str] = {
    entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in re.split(r"\n\n+", _FILE)
}

ACCENTS = {"v": "\u030c", "'": "\u0301", '"': "\u0308", "`": "\u0300"}  # of TeX, as in {\v{c}}

# The keys of every model, by its name on the command line.
KEYS_OF_MODELS: dict[str, tuple[str, ...]] = {
    "gcn": ("kipf2017semi",),
    "entropic-gcn": (PAPER, "kipf2017semi"),
    "pairnorm": ("zhao2020pairnorm", "kipf2017semi"),
    "g2": ("rusch2023gradient", "kipf2017semi"),
    "gcnii": ("chen2020simple",),
    "entropic-gcnii": (PAPER, "chen2020simple"),
    "deep-gcn": ("gasteiger2019predict", "chen2020simple"),
    "entropic-deep-gcn": (PAPER, "gasteiger2019predict", "chen2020simple"),
    "residual-gcn": ("li2019deepgcns", "li2020deepergcn", "kipf2017semi"),
    "state-space": ("arroyo2025vanishing", "kipf2017semi"),
    "linear": ("gasteiger2019predict", "wu2019simplifying"),
    "appnp": ("gasteiger2019predict",),
    "dagnn": ("liu2020towards",),
    "gcniii": ("chen2025wide", "chen2020simple"),
    "ggcm": ("wang2023cluster",),
    "random-propagation": ("feng2020graph",),
    "noisy-gcn": ("godwin2022simple", "kipf2017semi"),
    "dropedge-gcn": ("rong2020dropedge", "kipf2017semi"),
    "gat": ("velickovic2018graph", "fey2019fast"),
    "graphsage": ("hamilton2017inductive", "fey2019fast"),
    "gin": ("xu2019how", "fey2019fast"),
    "gps": ("rampasek2022recipe", "fey2019fast"),
    "egnn": ("zhou2021dirichlet",),
    "acmp": ("wang2023acmp", "chen2018neural"),
    "grand": ("chamberlain2021grand", "chen2018neural"),
    "entropic-grand": (PAPER, "chamberlain2021grand", "chen2018neural"),
}


def cite(*names: str) -> str:
    """Return the BibTeX entries of models and keys, after that of entropy-aware message passing.

    Args:
        *names: names of models (``"gcnii"``) or keys (``"chen2020simple"``), in any order.

    Example:
        >>> print(cite("gcnii"))
        @misc{nazari2024entropy,
          title         = {Entropy Aware Message Passing in Graph Neural Networks},
          author        = {Nazari, Philipp and Lemke, Oliver and Guidobene, Davide and
                           Gesp, Artiom},
          year          = {2024},
          eprint        = {2403.04636},
          archiveprefix = {arXiv},
        }
        <BLANKLINE>
        @inproceedings{chen2020simple,
          title     = {Simple and Deep Graph Convolutional Networks},
          author    = {Chen, Ming and Wei, Zhewei and Huang, Zengfeng and Ding, Bolin and
                       Li, Yaliang},
          booktitle = {Proceedings of the 37th International Conference on Machine Learning},
          series    = {Proceedings of Machine Learning Research},
          volume    = {119},
          pages     = {1725--1735},
          year      = {2020},
        }
    """
    if unknown := [name for name in names if name not in KEYS_OF_MODELS and name not in BIBTEX]:
        raise ValueError(
            f"nothing to cite for {', '.join(map(repr, unknown))}; there are the models "
            f"{', '.join(KEYS_OF_MODELS)} and the keys {', '.join(BIBTEX)}."
            f"{did_you_mean(unknown[0], [*KEYS_OF_MODELS, *BIBTEX])}"
        )
    keys = [PAPER, *(key for name in names for key in KEYS_OF_MODELS.get(name, (name,)))]
    return "\n\n".join(BIBTEX[key] for key in dict.fromkeys(keys))


def reference(model: str) -> str:
    """Return the authors and the year of a model's own paper, the first of its keys.

    Example:
        >>> reference("gcn"), reference("entropic-gcn")
        ('Kipf & Welling, 2017', 'Nazari et al., 2024')
    """
    fields = dict(re.findall(r"(\w+) *= {(.*)},\n", BIBTEX[KEYS_OF_MODELS[model][0]]))
    surnames = [name.partition(",")[0] for name in plain(fields["author"]).split(" and ")]
    others = " et al." if len(surnames) > 2 else "".join(f" & {name}" for name in surnames[1:])
    return f"{surnames[0]}{others}, {fields['year']}"


def plain(text: str) -> str:
    r"""Return the text of a BibTeX field with accented letters as such.

    Example:
        >>> plain(r"Veli{\v{c}}kovi{\'c}")
        'Veličković'
    """
    accented = re.sub(r"{\\(.){?(\w)}?}", lambda found: found[2] + ACCENTS[found[1]], text)
    return unicodedata.normalize("NFC", accented)
