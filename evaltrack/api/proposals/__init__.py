"""Questions that a model proposes out of a corpus.

`reply` checks what it wrote against the corpus, `propose` asks it. The prompts are text files beside these.
"""
