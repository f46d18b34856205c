"""What tests put in the place of a model, a retriever, a parser, an embedder: each kind once.

A fake is told what to say; it counts what it was asked, and how many asked at once. What a test's model says belongs to the test: a
function, a list, or a subclass with a
`reply` of its own.
"""

import asyncio, inspect, re, time

import numpy as np

from treekit.core.prompts import Completion, ScoringUnsupported
from facts import facts_as_said
from treekit.experiments.results import Results
from treekit.retrieval.bm25 import Hit
from treekit.syntax.entities import AnnotatedText, SentenceTree
from treekit.syntax.parser import Entity, Parse


class FakeChat:
    "A `LLMClient` that is told its replies. An exception among them is raised."

    model, endpoint, defaults = "fake", "nowhere", {}

    def __init__(
        self,
        # a text; a list of replies, one a call, the last for ever; or a function of the request (and the sample's number, if it takes two)
        says="",
        *,
        latency=0.0,  # seconds a call
        pauses=None,  # a `random.Random`: each call takes a share of `latency` that it draws
        at_once=None,  # calls that this model takes at a time; None: all
        tokens=(10, 2),  # of a prompt, of a reply
        scores=None,  # function of request and continuation: log-probabilities; None: it can't score
        **identity,  # model, endpoint, defaults
    ):
        self.says, self.latency, self.pauses, self.at_once, self.tokens, self.scores = (
            says,
            latency,
            pauses,
            at_once,
            tokens,
            scores,
        )
        self.asked, self.log, self.open, self.most, self.closed, self.gate = [], [], 0, 0, 0, None
        for name, value in identity.items():
            setattr(self, name, value)

    async def complete(self, request):
        self.asked.append(request)
        async with self.turn(request):
            pass
        replies = [self.reply(request, request.sample + i) for i in range(request.n)]
        for said in replies:
            if isinstance(said, Exception):
                raise said
        return [
            said
            if isinstance(said, Completion)
            else Completion(said, tokens_in=self.tokens[0], tokens_out=self.tokens[1])
            for said in replies
        ]

    def reply(self, request, sample):
        "One reply: a text, a `Completion` or an exception."
        if isinstance(self.says, str):
            return self.says
        if isinstance(self.says, (list, tuple)):
            return self.says[min(len(self.asked), len(self.says)) - 1]
        return _call(self.says, request, sample)

    def turn(self, request):
        return _Turn(self, request)

    async def score(self, request, continuation):
        if self.scores is None:
            raise ScoringUnsupported("this server can't score")
        self.asked.append(request)
        async with self.turn(request):
            pass
        return self.scores(request, continuation)

    async def close(self):
        self.closed += 1

    @property
    def texts(self):
        return [r.text for r in self.asked]

    def tasks(self):
        "How often each task was asked."
        names = [r.prompt.task for r in self.asked]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def inputs(self, task):
        "The inputs of each request of a task, or of a prompt by its name."
        return [r.inputs for r in self.asked if task in (r.prompt.task, r.prompt.name)]


class _Turn:
    "A call under way."

    def __init__(self, chat, request):
        self.chat, self.request = chat, request

    async def __aenter__(self):
        chat, self.started = self.chat, time.perf_counter()
        chat.gate = chat.gate or asyncio.Semaphore(chat.at_once or 100_000)
        await chat.gate.acquire()
        chat.open += 1
        chat.most = max(chat.most, chat.open)
        await asyncio.sleep(chat.pauses.random() * chat.latency if chat.pauses else chat.latency)

    async def __aexit__(self, *error):
        self.chat.open -= 1
        self.chat.gate.release()
        self.chat.log.append((self.started, time.perf_counter(), self.request))


class FakeShelf:
    "A `Retriever` that is told what it finds."

    def __init__(
        self,
        found=(),  # passages, for every query; or a function of a query (and k, if it takes two) that gives passages or hits
        fingerprint="a shelf",
    ):
        self.found, self.fingerprint, self.searches = found, fingerprint, []

    def search(self, queries, k=15):
        self.searches.append((list(queries), k))
        return [self.hits(q, k) for q in queries]

    @property
    def queries(self):
        return [(q, k) for queries, k in self.searches for q in queries]

    def hits(self, query, k):
        found = self.found
        if callable(found):
            found = _call(found, query, k)
        return [p if isinstance(p, Hit) else Hit(p, float(k - i), i + 1) for i, p in enumerate(list(found)[:k])]


def _call(function, *arguments):
    "A function of some of these arguments, the first ones."
    return function(*arguments[: len(inspect.signature(function).parameters)])


class FakeParser:
    "A `Parser` that knows some parses by their texts; any other text has no sentence."

    fingerprint = "by hand"

    def __init__(self, parses):
        self.parses, self.asked = parses, []

    def parse(self, texts):
        self.asked += texts
        return [self.parses.get(t, Parse(t, ())) for t in texts]


class FakeEmbedder:
    "A dimension per word. `counted` texts, `questions` apart."

    def __init__(self, identity="", width=512):
        self.seen, self.counted, self.questions, self.identity, self.width = {}, 0, 0, identity, width

    def __call__(self, texts, questions=False):
        if questions:
            self.questions += len(texts)
        else:
            self.counted += len(texts)
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[self.seen.setdefault(word, len(self.seen))] = 1
        return found / np.maximum(1e-9, np.linalg.norm(found, axis=1, keepdims=True))


class PairsOfCapitals:
    "An annotator: a sentence ends at a full stop, two capitalised words in a row are an entity, no word hangs on another."

    fingerprint = "capitals"

    def __init__(self):
        self.counted = 0

    def __call__(self, texts):
        self.counted += len(texts)
        return [AnnotatedText(tuple(self.sentences(t)), tuple(self.entities(t))) for t in texts]

    def sentences(self, text):
        return (
            SentenceTree((m.start(),), (m.end(),), (0,), ("X",))
            for m in re.finditer(r"[^.\n]+\.?", text)
            if m[0].strip()
        )

    def entities(self, text):
        return (Entity(m[0], "MISC", *m.span()) for m in re.finditer(r"[A-Z]\w+ [A-Z]\w+", text))


class RunsOfCapitals:
    "An annotator: runs of capitalised words are entities, and every word hangs on the first."

    fingerprint = "capitals"
    NO_NAMES = ("Who", "Where", "When", "Which", "In", "It")

    def __call__(self, texts):
        return [self.one(t) for t in texts]

    def one(self, text):
        places = [m.span() for m in re.finditer(r"\w+", text)]
        if not places:
            return AnnotatedText((), (), "the parser found no sentence")
        heads = (0,) + (1,) * (len(places) - 1)
        shape = SentenceTree(tuple(s for s, _ in places), tuple(e for _, e in places), heads, ("X",) * len(places))
        runs = (m for m in re.finditer(r"\b[A-Z]\w+(?: (?:the )?[A-Z]\w+)*", text) if m[0] not in self.NO_NAMES)
        return AnnotatedText((shape,), tuple(Entity(m[0], "MISC", m.start(), m.end()) for m in runs))


def printed_run(paper, artefact, rows, model, **others):
    "The `Results` behind rows of scores, whose facts are what the paper says of its own run; `others` are facts that are otherwise."
    cells = {(r["method"], r["dataset"]) for r in rows}
    facts = {(m, d): facts_as_said(paper, artefact, d, m, **dict(model=model) | others) for m, d in cells}
    return Results([], model, facts=facts)


def tiny_judge(folder, **size):
    "A judge with random weights, always the same ones, in a folder: as a T5 for entailment is laid."
    import torch, transformers
    from treekit.utils.model_files import MINILM, model_folder

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder(MINILM))
    shape = dict(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2) | size
    config = transformers.T5Config(vocab_size=tokenizer.vocab_size, decoder_start_token_id=0, **shape)
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_llama(folder, texts, template=None):
    "A language model with random weights, always the same ones, and a byte-pair tokenizer of some texts, in a folder."
    import torch, transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=letters, show_progress=False
    )
    pieces.train_from_iterator(texts, trainer)
    ends = dict(pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces, clean_up_tokenization_spaces=False, **ends
    )
    tokenizer.chat_template = template
    torch.manual_seed(0)
    shape = dict(
        hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2
    )
    ids = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=True, max_position_embeddings=2048)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(tokenizer), **shape, **ids)).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return folder
