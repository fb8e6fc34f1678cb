"""The papers."""

from __future__ import annotations

PAPERS = {
    "PL": "Phuong and Lampert, ICLR 2021",
    "ML": "Min, Mallada and Vidal, ICLR 2024",
    "SBG": "Sarussi, Brutzkus and Globerson, ICML 2021",
    "LL": "Lyu, Li, Wang and Arora, NeurIPS 2021",
}

#: By key; beyond the four papers, those that single statements rest on.
BIBTEX = {
    "PL": """@inproceedings{phuong2021inductive,
  title = {The inductive bias of {ReLU} networks on orthogonally separable data},
  author = {Phuong, Mary and Lampert, Christoph H.},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2021}
}""",
    "ML": """@inproceedings{min2024early,
  title = {Early Neuron Alignment in Two-layer {ReLU} Networks with Small Initialization},
  author = {Min, Hancheng and Mallada, Enrique and Vidal, Ren{\\'e}},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2024}
}""",
    "SBG": """@inproceedings{sarussi2021towards,
  title = {Towards Understanding Learning in Neural Networks with Linear Teachers},
  author = {Sarussi, Roei and Brutzkus, Alon and Globerson, Amir},
  booktitle = {International Conference on Machine Learning (ICML)},
  year = {2021}
}""",
    "LL": """@inproceedings{lyu2021gradient,
  title = {Gradient Descent on Two-layer Nets: Margin Maximization and Simplicity Bias},
  author = {Lyu, Kaifeng and Li, Zhiyuan and Wang, Runzhe and Arora, Sanjeev},
  booktitle = {Advances in Neural Information Processing Systems (NeurIPS)},
  year = {2021}
}""",
    "lyu-li": """@inproceedings{lyu2020gradient,
  title = {Gradient Descent Maximizes the Margin of Homogeneous Neural Networks},
  author = {Lyu, Kaifeng and Li, Jian},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2020}
}""",
    "ji-telgarsky": """@inproceedings{ji2020directional,
  title = {Directional convergence and alignment in deep learning},
  author = {Ji, Ziwei and Telgarsky, Matus},
  booktitle = {Advances in Neural Information Processing Systems (NeurIPS)},
  year = {2020}
}""",
    "maennel": """@article{maennel2018gradient,
  title = {Gradient Descent Quantizes {ReLU} Network Features},
  author = {Maennel, Hartmut and Bousquet, Olivier and Gelly, Sylvain},
  journal = {arXiv preprint arXiv:1803.08367},
  year = {2018}
}""",
}
