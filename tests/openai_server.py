"""A server that speaks the OpenAI protocol over a real socket, for tests and benchmarks; it runs in its own process.

    with Server(latency=0.1) as server:          # server.url is the endpoint
        server.script(faults=[dict(kind="500", times=2)])
        ...
        server.log(), server.count, server.reset()

Plain asyncio and a parser for just what clients send, and the work is part of the latency, so that benchmarks measure the client.
What it does is set at the start or by `script`; the keys of a script:

    latency   seconds before each reply
    rules     [[regular expression, reply], ...]: the first that matches the messages' text gives the reply
    reply     "module:function", called with the request's JSON, returns the reply's text (or a list, one per sample)
    faults    [dict(kind=..., times=1, match=regular expression, ...)]: used up in order, one per request; kinds below
    n         False: the server ignores `n` and returns one sample
    usage     False: no token counts; a dict: these
    refuses   {parameter: message}: a request with this parameter gets a 400 with this message
    refuse    (status, message): every chat request gets it
    thinking  text that each reply thinks first; thinking_as: "field" (reasoning_content) or "tags" (<think>)
    echo      False: /v1/completions has no echo (404); "ignored": it answers, without echoing
    spread    True: the echoed log-probabilities also depend on the prompt, by a factor from 0 to 1
        limit     calls that it takes at once: what is beyond gets a 429
    dead      True: each connection is broken off
max_concurrent is measured: log()["most_at_once"]

Faults: "429" (retry_after=seconds), "500", "503", "400", "hang" (seconds), "truncated" (a body shorter than announced), "cut" (half the
JSON, of the right length), "not json", "empty" (an empty completion), "huge" (2 MB), "schema" (no choices), "error in 200", "reset"
(the connection), "length" (cut off at max_tokens), "drip" (a body that comes byte by byte), "null" (content is null), "raw" (status, body,
headers as they are given; without a body the usual answer).
"""

import asyncio, hashlib, importlib, json, re, subprocess, sys, time, urllib.request
from pathlib import Path


def default_reply(body):
    "A deterministic reply in whatever format the messages ask for: sub-questions, or an explanation with a final answer."
    text = "\n".join(m["content"] for m in body["messages"])
    words = re.findall(r"\b[A-Z][a-z]{3,}\b", text) or ["Nobody"]
    pick = words[int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % len(words)]
    if re.search(r"response:", text, re.I):
        return f"response: Who is {pick}?; Where is {pick}?; When was {pick} founded?"
    if re.search(r"FINAL", text):
        return f"Explanation: the documents mention {pick}.\nFINAL: {pick}"
    return f"{pick} is mentioned in the documents."


class State:
    def __init__(self):
        self.script, self.log, self.open, self.most, self.refused = dict(latency=0.0, faults=[], rules=[]), [], 0, 0, 0

    def fault(self, text):
        for fault in self.script["faults"]:
            if fault.get("times", 1) > 0 and re.search(fault.get("match", ""), text, re.S):
                fault["times"] = fault.get("times", 1) - 1
                return fault
        return {}

    def replies(self, body, text):
        n = body.get("n") or 1 if self.script.get("n", True) else 1
        for pattern, reply in self.script["rules"]:
            if re.search(pattern, text, re.S):
                return [reply] * n
        if name := self.script.get("reply"):
            module, function = name.split(":")
            reply = getattr(importlib.import_module(module), function)(body)
            return list(reply)[:n] if isinstance(reply, (list, tuple)) else [reply] * n
        return [default_reply(body)] * n


STATE = State()


def chat(body, fault):
    text = "\n".join(m["content"] for m in body["messages"])
    choices, out = [], 0
    for i, reply in enumerate(STATE.replies(body, text)):
        kind, message, finish = fault.get("kind"), dict(role="assistant"), "stop"
        if kind == "empty":
            reply = ""
        if kind == "null":
            reply = None
        if kind == "huge":
            reply = "na " * 700_000
        if kind == "length":
            finish = "length"
        if thought := STATE.script.get("thinking"):
            if STATE.script.get("thinking_as") == "tags":
                reply = f"<think>{thought}</think>\n\n{reply}"
            else:
                message["reasoning_content"] = thought
        message["content"] = reply
        out += len((reply or "").split())
        choice = dict(index=i, message=message, finish_reason=finish)
        if body.get("logprobs"):
            choice["logprobs"] = dict(content=[dict(token=w, logprob=-0.5) for w in (reply or "").split()])
        choices.append(choice)
    answer = dict(id="x", object="chat.completion", created=0, model=body["model"], choices=choices)
    if STATE.script.get("usage", True):
        answer["usage"] = dict(
            prompt_tokens=len(text.split()),
            completion_tokens=out,
            total_tokens=len(text.split()) + out,
            prompt_tokens_details=dict(cached_tokens=0),
        )
    if isinstance(usage := STATE.script.get("usage"), dict):
        answer["usage"] |= usage
    return answer


def completions(body):
    "Echoed log-probabilities: a token is a word with the blanks before it, and -len(word)/10 its log-probability."
    if not STATE.script.get("echo", True):
        return None
    prompt, tokens = body["prompt"], []
    logprobs = None
    if body.get("echo") and STATE.script.get("echo", True) is True:
        tokens = list(re.finditer(r"\s*\S+|\s+$", prompt))
        extra = body.get("max_tokens", 16)
        scale = int(hashlib.sha256(prompt.encode()).hexdigest()[:4], 16) / 0xFFFF if STATE.script.get("spread") else 1
        logprobs = dict(
            tokens=[t[0] for t in tokens] + ["x"] * extra,
            text_offset=[t.start() for t in tokens] + [len(prompt)] * extra,
            token_logprobs=[None if i == 0 else -scale * len(t[0].strip()) / 10 for i, t in enumerate(tokens)]
            + [-9.0] * extra,
        )
    return dict(
        id="x",
        object="text_completion",
        created=0,
        model=body["model"],
        choices=[dict(index=0, text=prompt, finish_reason="length", logprobs=logprobs)],
        usage=dict(prompt_tokens=len(tokens), completion_tokens=1, total_tokens=len(tokens) + 1),
    )


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer, self.task = transport, b"", None

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            found = re.search(rb"content-length: *(\d+)", head, re.I)
            length = int(found[1]) if found else 0
            if len(rest) < length:
                return
            body, self.buffer = rest[:length], rest[length:]
            self.task = asyncio.ensure_future(self.answer(head.split(b" ", 2)[1].decode(), head, body))

    def connection_lost(self, error):
        if self.task:
            self.task.cancel()  # the client gave up

    def send(self, status, answer, *headers, announced=None):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        lines = [
            f"HTTP/1.1 {status} X",
            *(() if any(h.startswith("content-type:") for h in headers) else ("content-type: application/json",)),
            f"content-length: {len(body) if announced is None else announced}",
            *headers,
        ]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def answer(self, path, head, body):
        if path.startswith("/_"):
            return self.control(path, body)
        STATE.open += 1
        STATE.most = max(STATE.most, STATE.open)
        state = STATE.log  # a reset starts another count
        try:
            await self.reply(path, head, body)
        finally:
            STATE.open -= state is STATE.log

    async def reply(self, path, head, body):
        if not body.startswith(b"{"):
            return self.send(404, dict(error=dict(message="not found")))  # a file, or nothing
        began, asked = time.perf_counter(), json.loads(body)
        text = "\n".join(m["content"] for m in asked["messages"]) if "messages" in asked else asked["prompt"]
        if STATE.script.get("dead"):
            return self.transport.abort()
        if STATE.open > STATE.script.get("limit", STATE.open):
            STATE.refused += 1
            return self.send(429, dict(error=dict(message="slow down")))
        fault = STATE.fault(text)
        kind = fault.get("kind")
        entry = dict(
            time=time.time(),
            path=path,
            text=text[-200:],
            fault=kind,
            n=asked.get("n"),
            max_tokens=asked.get("max_tokens"),
            temperature=asked.get("temperature"),
            stop=asked.get("stop"),
            head=head.decode("latin-1"),
            body={k: v for k, v in asked.items() if k not in ("messages", "prompt")},
        )
        STATE.log.append(entry)
        for name, message in STATE.script.get("refuses", {}).items():
            if name in asked:
                return self.send(400, dict(error=dict(message=message, param=name, code="unsupported_parameter")))
        if STATE.script.get("refuse") and path == "/v1/chat/completions":
            status, message = STATE.script["refuse"]
            return self.send(status, dict(error=dict(message=message)))
        answer = (
            chat(asked, fault)
            if path == "/v1/chat/completions"
            else completions(asked)
            if path == "/v1/completions"
            else None
        )
        whole = json.dumps(answer).encode()
        # the work is part of the latency, not on top of it
        await asyncio.sleep(
            fault.get("seconds", 30)
            if kind == "hang"
            else max(0, STATE.script["latency"] - (time.perf_counter() - began))
        )
        if STATE.script.get("dead"):
            return self.transport.abort()
        entry["answered"] = time.time()
        if self.transport.is_closing():
            return
        if kind == "429":
            return self.send(
                429,
                dict(error=dict(message="slow down")),
                *([f"retry-after: {fault['retry_after']}"] if "retry_after" in fault else []),
            )
        if kind in ("400", "401", "500", "503"):
            return self.send(int(kind), dict(error=dict(message=fault.get("message", f"fault {kind}"))))
        if kind == "reset":
            return self.transport.abort()
        if kind == "raw":
            return self.send(
                fault.get("status", 200), fault["body"].encode() if "body" in fault else whole, *fault["headers"]
            )
        if kind == "not json":
            return self.send(200, b"<html>Bad gateway</html>")
        if kind == "schema":
            return self.send(200, dict(id="x", choices=None))
        if kind == "error in 200":
            return self.send(200, dict(error=dict(message="overloaded", code=502)))
        if answer is None:
            return self.send(404, dict(error=dict(message="not found")))
        if "usage" in answer:
            entry["tokens"] = [answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]]
        if kind == "cut":
            return self.send(200, whole[: len(whole) // 2])
        if kind == "truncated":
            self.send(200, whole[: len(whole) // 2], announced=len(whole))
            return self.transport.close()
        if kind == "drip":
            self.send(200, b"", announced=len(whole))
            for byte in whole:
                await asyncio.sleep(fault.get("seconds", 0.05))
                if self.transport.is_closing():
                    return
                self.transport.write(bytes([byte]))
            return
        self.send(200, whole)

    def control(self, path, body):
        if path == "/_script":
            STATE.script |= json.loads(body)
        if path == "/_reset":
            STATE.__init__()
        counts = dict(count=len(STATE.log), most_at_once=STATE.most, open=STATE.open, refused=STATE.refused)
        self.send(200, dict(log=STATE.log if path == "/_log" else []) | counts)


async def main(script):
    STATE.script |= script
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Server:
    "Starts the server's process; a context manager."

    file = __file__

    def __init__(self, **script):
        self.process = subprocess.Popen(
            [sys.executable, self.file, json.dumps(script)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def _ask(self, path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", json.dumps(body or {}).encode()) as reply:
            return json.load(reply)

    def script(self, **script):
        self._ask("/_script", script)

    def reset(self, **script):
        self._ask("/_reset")
        self.script(**script)

    def log(self):
        return self._ask("/_log")

    @property
    def requests(self):
        return self.log()["log"]

    @property
    def count(self):
        return self._ask("/_count")["count"]  # requests so far, whatever they got

    @property
    def most_at_once(self):
        return self._ask("/_count")["most_at_once"]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        asyncio.run(main(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")))
    except KeyboardInterrupt:
        pass
