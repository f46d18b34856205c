"Descriptor of ProbTree. It names code by references, so that listing papers imports none of it."

from pathlib import Path

from treekit.papers import Paper

HERE = Path(__file__).parent

PAPER = Paper(
    name="probtree",
    label="ProbTree",
    code="probtree",
    data=HERE / "data",
    methods={
        "probtree.method:METHODS": ("ProbTree", "CoT (closed-book)", "IRCoT"),
        "probtree.method:ABLATIONS": (
            "ProbTree w/o closed-book",
            "ProbTree w/o open-book",
            "ProbTree w/o child-aggregating",
            "ProbTree w/o decomposition confidence",
            "ProbTree, random choice",
        ),
    },
    short_names={"probtree": "ProbTree"},
    prompts=("probtree.prompts:PROMPTS",),
    bibtex="""\
@inproceedings{probtree,
  title     = {Probabilistic Tree-of-thought Reasoning for Answering Knowledge-intensive Complex Questions},
  author    = {Cao, Shulin and Zhang, Jiajie and Shi, Jiaxin and Lv, Xin and Yao, Zijun and Tian, Qi and Hou, Lei and Li, Juanzi},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2023},
  year      = {2023},
  url       = {https://aclanthology.org/2023.findings-emnlp.835/},
  venue     = {Findings of EMNLP 2023},
  annote    = {a tree of sub-questions, answered from the leaves to the root by the most confident of three QA modules}
}""",
)
