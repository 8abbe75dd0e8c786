"""BibTeX entries of the methods, measures, software and data behind the library."""

from __future__ import annotations

PAPER = "nazari2024entropy"

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
    "linear": ("gasteiger2019predict", "wu2019simplifying"),
    "noisy-gcn": ("godwin2022simple", "kipf2017semi"),
    "gat": ("velickovic2018graph", "fey2019fast"),
    "graphsage": ("hamilton2017inductive", "fey2019fast"),
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
        )
    keys = [PAPER, *(key for name in names for key in KEYS_OF_MODELS.get(name, (name,)))]
    return "\n\n".join(BIBTEX[key] for key in dict.fromkeys(keys))


def entry(kind: str, key: str, **fields: str) -> str:
    """Return a BibTeX entry with its equal signs in one column."""
    width = max(map(len, fields))
    lines = [f"  {name.ljust(width)} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def preprint(key: str, title: str, author: str, year: int, eprint: str) -> str:
    """Return the entry of a preprint on arXiv."""
    source = {"eprint": eprint, "archiveprefix": "arXiv"}
    return entry("misc", key, title=title, author=author, year=str(year), **source)


def paper(key: str, title: str, author: str, booktitle: str, year: int, **fields: str) -> str:
    """Return the entry of a paper in the proceedings of a conference."""
    given = {"title": title, "author": author, "booktitle": booktitle, **fields}
    return entry("inproceedings", key, **given, year=str(year))


def at_iclr(key: str, title: str, author: str, year: int) -> str:
    """Return the entry of a paper at ICLR."""
    return paper(key, title, author, "International Conference on Learning Representations", year)


def at_icml(key: str, title: str, author: str, year: int, volume: int, pages: str) -> str:
    """Return the entry of a paper at ICML, which the year numbers: the 37th was in 2020."""
    number = year - 1983
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    booktitle = f"Proceedings of the {number}{ending} International Conference on Machine Learning"
    series = "Proceedings of Machine Learning Research"
    given = {"series": series, "volume": str(volume), "pages": pages}
    return paper(key, title, author, booktitle, year, **given)


def at_neurips(key: str, title: str, author: str, year: int) -> str:
    """Return the entry of a paper at NeurIPS, whose volumes count from that of 1988."""
    booktitle = "Advances in Neural Information Processing Systems"
    return paper(key, title, author, booktitle, year, volume=str(year - 1987))


KDD_2019 = (
    "Proceedings of the 25th ACM SIGKDD International Conference on Knowledge Discovery and "
    "Data Mining"
)
ENTRIES = (
    preprint(
        PAPER,
        "Entropy Aware Message Passing in Graph Neural Networks",
        "Nazari, Philipp and Lemke, Oliver and Guidobene, Davide and Gesp, Artiom",
        2024,
        "2403.04636",
    ),
    # Models
    at_iclr(
        "kipf2017semi",
        "Semi-Supervised Classification with Graph Convolutional Networks",
        "Kipf, Thomas N. and Welling, Max",
        2017,
    ),
    at_iclr(
        "zhao2020pairnorm",
        "{PairNorm}: Tackling Oversmoothing in {GNNs}",
        "Zhao, Lingxiao and Akoglu, Leman",
        2020,
    ),
    at_iclr(
        "rusch2023gradient",
        "Gradient Gating for Deep Multi-Rate Learning on Graphs",
        "Rusch, T. Konstantin and Chamberlain, Benjamin P. and Mahoney, Michael W. and "
        "Bronstein, Michael M. and Mishra, Siddhartha",
        2023,
    ),
    at_icml(
        "chen2020simple",
        "Simple and Deep Graph Convolutional Networks",
        "Chen, Ming and Wei, Zhewei and Huang, Zengfeng and Ding, Bolin and Li, Yaliang",
        2020,
        119,
        "1725--1735",
    ),
    paper(
        "li2019deepgcns",
        "{DeepGCNs}: Can {GCNs} Go as Deep as {CNNs}?",
        'Li, Guohao and M{\\"u}ller, Matthias and Thabet, Ali and Ghanem, Bernard',
        "Proceedings of the IEEE/CVF International Conference on Computer Vision",
        2019,
        pages="9267--9276",
    ),
    preprint(
        "li2020deepergcn",
        "{DeeperGCN}: All You Need to Train Deeper {GCNs}",
        "Li, Guohao and Xiong, Chenxin and Thabet, Ali and Ghanem, Bernard",
        2020,
        "2006.07739",
    ),
    at_iclr(
        "gasteiger2019predict",
        "Predict then Propagate: Graph Neural Networks meet Personalized {PageRank}",
        'Gasteiger, Johannes and Bojchevski, Aleksandar and G{\\"u}nnemann, Stephan',
        2019,
    ),
    at_icml(
        "wu2019simplifying",
        "Simplifying Graph Convolutional Networks",
        "Wu, Felix and Souza, Amauri and Zhang, Tianyi and Fifty, Christopher and Yu, Tao and "
        "Weinberger, Kilian",
        2019,
        97,
        "6861--6871",
    ),
    at_iclr(
        "godwin2022simple",
        "Simple {GNN} Regularisation for {3D} Molecular Property Prediction and Beyond",
        "Godwin, Jonathan and Schaarschmidt, Michael and Gaunt, Alexander L. and "
        "Sanchez-Gonzalez, Alvaro and Rubanova, Yulia and "
        "Veli{\\v{c}}kovi{\\'c}, Petar and Kirkpatrick, James and Battaglia, Peter",
        2022,
    ),
    at_iclr(
        "velickovic2018graph",
        "Graph Attention Networks",
        "Veli{\\v{c}}kovi{\\'c}, Petar and Cucurull, Guillem and Casanova, Arantxa and "
        "Romero, Adriana and "
        "Li{\\`o}, Pietro and Bengio, Yoshua",
        2018,
    ),
    at_neurips(
        "hamilton2017inductive",
        "Inductive Representation Learning on Large Graphs",
        "Hamilton, William L. and Ying, Rex and Leskovec, Jure",
        2017,
    ),
    at_neurips(
        "zhou2021dirichlet",
        "Dirichlet Energy Constrained Learning for Deep Graph Neural Networks",
        "Zhou, Kaixiong and Huang, Xiao and Zha, Daochen and Chen, Rui and Li, Li and "
        "Choi, Soo-Hyun and Hu, Xia",
        2021,
    ),
    at_iclr(
        "wang2023acmp",
        "{ACMP}: {Allen-Cahn} Message Passing with Attractive and "
        "Repulsive Forces for Graph Neural Networks",
        "Wang, Yuelin and Yi, Kai and Liu, Xinliang and Wang, Yu Guang and Jin, Shi",
        2023,
    ),
    at_icml(
        "chamberlain2021grand",
        "{GRAND}: Graph Neural Diffusion",
        "Chamberlain, Ben and Rowbottom, James and Gorinova, Maria I. and "
        "Bronstein, Michael and Webb, Stefan and Rossi, Emanuele",
        2021,
        139,
        "1407--1418",
    ),
    at_neurips(
        "chen2018neural",
        "Neural Ordinary Differential Equations",
        "Chen, Ricky T. Q. and Rubanova, Yulia and Bettencourt, Jesse and Duvenaud, David",
        2018,
    ),
    # Measures
    preprint(
        "cai2020note",
        "A Note on Over-Smoothing for Graph Neural Networks",
        "Cai, Chen and Wang, Yusu",
        2020,
        "2006.13318",
    ),
    preprint(
        "rusch2023survey",
        "A Survey on Oversmoothing in Graph Neural Networks",
        "Rusch, T. Konstantin and Bronstein, Michael M. and Mishra, Siddhartha",
        2023,
        "2303.10993",
    ),
    paper(
        "chen2020measuring",
        "Measuring and Relieving the Over-Smoothing Problem for Graph Neural Networks from the "
        "Topological View",
        "Chen, Deli and Lin, Yankai and Li, Wei and Li, Peng and Zhou, Jie and Sun, Xu",
        "Proceedings of the AAAI Conference on Artificial Intelligence",
        2020,
        volume="34",
        pages="3438--3445",
    ),
    at_icml(
        "garrido2023rankme",
        "{RankMe}: Assessing the Downstream Performance of Pretrained Self-Supervised "
        "Representations by Their Rank",
        "Garrido, Quentin and Balestriero, Randall and Najman, Laurent and LeCun, Yann",
        2023,
        202,
        "10929--10974",
    ),
    # Software and data
    paper(
        "fey2019fast",
        "Fast Graph Representation Learning with {PyTorch Geometric}",
        "Fey, Matthias and Lenssen, Jan E.",
        "ICLR Workshop on Representation Learning on Graphs and Manifolds",
        2019,
    ),
    paper(
        "akiba2019optuna",
        "{Optuna}: A Next-Generation Hyperparameter Optimization Framework",
        "Akiba, Takuya and Sano, Shotaro and Yanase, Toshihiko and Ohta, Takeru and "
        "Koyama, Masanori",
        KDD_2019,
        2019,
        pages="2623--2631",
    ),
    paper(
        "chiang2019cluster",
        "{Cluster-GCN}: An Efficient Algorithm for Training Deep and "
        "Large Graph Convolutional Networks",
        "Chiang, Wei-Lin and Liu, Xuanqing and Si, Si and Li, Yang and Bengio, Samy and "
        "Hsieh, Cho-Jui",
        KDD_2019,
        2019,
        pages="257--266",
    ),
    at_icml(
        "yang2016revisiting",
        "Revisiting Semi-Supervised Learning with Graph Embeddings",
        "Yang, Zhilin and Cohen, William and Salakhutdinov, Ruslan",
        2016,
        48,
        "40--48",
    ),
)

BIBTEX: dict[str, str] = {text[text.index("{") + 1 : text.index(",")]: text for text in ENTRIES}
