"Replies for the local server's `reply` setting; each gets the request's JSON."

seen = []


def numbered(body):
    return [f"reply {i}" for i in range(body.get("n") or 1)]
