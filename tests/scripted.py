"Replies for the local server's `reply` setting; each gets the request's JSON."

seen = []


def numbered(body):
    return [f"reply {i}" for i in range(body.get("n") or 1)]


def second_is_empty_at_first(body):
    seen.append(body)
    n = body.get("n") or 1
    return ["" if len(seen) == 1 and i == 1 else f"reply {i}" for i in range(n)]
