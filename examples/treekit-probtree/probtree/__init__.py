"ProbTree (Cao et al., Findings of EMNLP 2023), as a plug-in of treekit."
