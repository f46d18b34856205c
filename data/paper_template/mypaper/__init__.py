"My Paper, as a plug-in of treekit."
