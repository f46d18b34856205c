"""A server that speaks OpenAI's batch protocol, too: `openai_server` with /v1/files and /v1/batches.

    with BatchServer(reply="replies:various", seconds=0.2) as server:
        server.batches()        # every batch that was ordered, in order: id, name, state, its requests

A batch's requests are answered by what answers single ones. Further keys of a script:

    seconds     from a batch's order to its end
    batch_faults  [dict(kind=…, times=1, …)], used up in order, one per batch: "expired" (share: of its requests that are answered),
                "failed" (code, message), "cancelled", "errors" (share: of its requests that get an error; status, error: default a 500),
                "garbled" (half of the answers' file)
    slow_order  seconds between the arrival of an order and its reply: the batch is there from the arrival on
    order_faults  statuses that the next orders get ("reset": the connection breaks) after the batch was made
"""

import asyncio, json, re, sys, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import openai_server
from openai_server import STATE, Connection, Server

FILES, BATCHES = {}, {}


def text_of(body):
    return "\n".join(m["content"] for m in body["messages"]) if "messages" in body else body["prompt"]


def answer_line(line, fault, i, n):
    if fault.get("kind") == "errors" and i < fault["share"] * n:
        body = dict(error=fault.get("error", dict(message="oops")))
        return False, dict(
            custom_id=line["custom_id"], response=dict(status_code=fault.get("status", 500), body=body), error=None
        )
    body = (
        openai_server.chat(line["body"], {})
        if line["url"].endswith("/chat/completions")
        else openai_server.completions(line["body"])
    )
    if body is None:
        return False, dict(
            custom_id=line["custom_id"], response=dict(status_code=404, body=dict(error=dict(message="none")))
        )
    return True, dict(id="r", custom_id=line["custom_id"], response=dict(status_code=200, body=body), error=None)


def look(batch):
    "What has become of a batch by now."
    if batch["status"] in ("in_progress", "validating") and time.time() >= batch["ends"]:
        end(batch)
    shown = {k: v for k, v in batch.items() if k not in ("lines", "ends", "fault", "paid")}
    return shown | dict(request_counts=dict(total=len(batch["lines"]), completed=len(batch["paid"]), failed=0))


def end(batch):
    fault, lines = batch["fault"], batch["lines"]
    batch["ended"] = time.time()
    if fault.get("kind") == "failed":
        batch["status"], batch["errors"] = "failed", dict(data=[{k: fault.get(k, "?") for k in ("code", "message")}])
        return
    good, bad = [], []
    done = round(fault.get("share", 0.5) * len(lines)) if fault.get("kind") in ("expired", "cancelled") else len(lines)
    for i, line in enumerate(lines):
        if i >= done:
            error = dict(code=f"batch_{fault['kind']}", message="it could not be executed in time")
            bad.append(dict(custom_id=line["custom_id"], response=None, error=error))
            continue
        fine, row = answer_line(line, fault, i, len(lines))
        (good if fine else bad).append(row)
    batch["paid"] = [row["custom_id"] for row in good]
    good.reverse()  # in no order
    whole = "".join(json.dumps(row) + "\n" for row in good)
    if fault.get("kind") == "garbled":
        whole = whole[: len(whole) // 2]
    FILES[f"out-{batch['id']}"], FILES[f"err-{batch['id']}"] = whole, "".join(json.dumps(row) + "\n" for row in bad)
    batch |= dict(
        status=fault["kind"] if fault.get("kind") in ("expired", "cancelled") else "completed",
        output_file_id=f"out-{batch['id']}" if good else None,
        error_file_id=f"err-{batch['id']}" if bad else None,
    )


def order(body):
    lines = [json.loads(line) for line in FILES[body["input_file_id"]].splitlines()]
    faults = STATE.script.get("batch_faults", [])
    fault = next((f for f in faults if f.get("times", 1) > 0), {})
    if fault:
        fault["times"] = fault.get("times", 1) - 1
    id = f"batch_{len(BATCHES)}"
    BATCHES[id] = dict(
        id=id,
        object="batch",
        endpoint=body["endpoint"],
        input_file_id=body["input_file_id"],
        completion_window="24h",
        status="in_progress",
        created_at=int(time.time()),
        made=time.time(),
        metadata=body.get("metadata"),
        lines=lines,
        fault=fault,
        paid=[],
        errors=None,
        ends=time.time() + (0 if fault.get("kind") == "failed" else STATE.script.get("seconds", 0.0)),
        output_file_id=None,
        error_file_id=None,
    )
    return BATCHES[id]


class BatchConnection(Connection):
    async def reply(self, path, head, body):
        if not path.startswith(("/v1/files", "/v1/batches")):
            return await super().reply(path, head, body)
        where, _, query = path.removeprefix("/v1").partition("?")
        post = head.startswith(b"POST")
        if where == "/files" and post:
            boundary = re.search(rb"boundary=([^\s;]+)", head)[1]
            part = next(p for p in body.split(b"--" + boundary) if b'filename="' in p)
            name = f"file-{len(FILES)}"
            FILES[name] = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n").decode()
            return self.send(
                200, dict(id=name, object="file", bytes=len(FILES[name]), created_at=0, filename="f", purpose="batch")
            )
        if where.startswith("/files/"):
            return self.send(200, FILES[where.split("/")[2]].encode(), "content-type: application/octet-stream")
        if where == "/batches" and post:
            return await self.ordered(json.loads(body))
        if where == "/batches":
            after = re.search(r"after=(\w+)", query)
            rows = list(reversed(BATCHES.values()))
            if after:
                rows = rows[[b["id"] for b in rows].index(after[1]) + 1 :]
            return self.send(200, dict(object="list", data=[look(b) for b in rows[:2]], has_more=len(rows) > 2))
        if batch := BATCHES.get(where.split("/")[2]):
            return self.send(200, look(batch))
        self.send(404, dict(error=dict(message="no such batch")))

    async def ordered(self, body):
        made = order(body)
        if faults := STATE.script.get("order_faults"):
            fault = faults.pop(0)
            return self.transport.abort() if fault == "reset" else self.send(fault, dict(error=dict(message="lost")))
        await asyncio.sleep(STATE.script.get("slow_order", 0))
        if not self.transport.is_closing():
            self.send(200, look(made))

    def connection_lost(self, error):
        pass  # a killed client's order is carried out all the same

    def control(self, path, body):
        if path in ("/_reset", "/_forget"):
            FILES.clear(), BATCHES.clear()
        if path == "/_end":
            for b in BATCHES.values():
                b["ends"] = 0.0
            return self.send(200, {})
        if path != "/_batches":
            return super().control(path, body)
        rows = [
            look(b)
            | dict(
                texts=[text_of(line["body"]) for line in b["lines"]],
                ids=[line["custom_id"] for line in b["lines"]],
                paid=b["paid"],
            )
            for b in BATCHES.values()
        ]
        self.send(200, dict(batches=rows))


class BatchServer(Server):
    "Starts the server's process; a context manager."

    file = __file__

    def batches(self):
        return self._ask("/_batches")["batches"]

    def paid(self):
        "The ids of all requests that were answered, as often as they were."
        return [i for b in self.batches() for i in b["paid"]]


if __name__ == "__main__":
    openai_server.Connection = BatchConnection
    sys.modules.setdefault("openai_server", openai_server)
    try:
        asyncio.run(openai_server.main(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")))
    except KeyboardInterrupt:
        pass
