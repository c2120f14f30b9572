#!/usr/bin/env python3
"""An authorization server and the tool server that it protects, on one port, with faults on demand.

Speaks what MCP 2025-11-25 asks of both: RFC 9728, 8414, 7591, 7636, 8707, 9207, 7009. Standard library only. The port is
the first line on stdout; GET /log lists the requests that came. It checks what it is sent, as a real one does.
"""

import argparse
import base64
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote_plus, urlencode, urlparse

FAULTS = """none wrong_state wrong_iss no_iss no_s256 short_lived rejected refresh_refused registration_refused
no_registration slow moved token_moved insufficient_scope denied server_error wrong_issuer wrong_resource no_metadata
public_endpoint bad_token""".split()
TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}}
         for name in ("look", "write")]


class State:
    def __init__(self, flags):
        self.flags = flags
        self.log = []
        self.codes = {}
        # Access token to its scopes; refresh token to the same.
        self.tokens, self.refreshes = {}, {}
        self.clients = {"given": {"secret": flags.client_secret}}
        self.n_rejected = 0
        self.lock = threading.Lock()

    def has(self, fault):
        return self.flags.fault == fault

    def issue(self, scopes):
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[access], self.refreshes[refresh] = scopes, scopes
        lifetime = 5 if self.flags.fault in ("short_lived", "refresh_refused") else 3600
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": lifetime,
                "scope": " ".join(scopes)}


def challenge_of(verifier):
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def handler(state):
    flags = state.flags

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        @property
        def origin(self):
            return f"http://127.0.0.1:{self.server.server_port}"

        @property
        def issuer(self):
            return self.origin + flags.issuer_path

        def reply(self, status, body=b"", kind="application/json", **headers):
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def note(self, body=None):
            url = urlparse(self.path)
            entry = {"method": self.command, "path": url.path, "query": one(url.query), "body": body,
                     "authorization": self.headers.get("authorization")}
            with state.lock:
                state.log.append(entry)

        def do_GET(self):
            url = urlparse(self.path)
            if url.path == "/log":
                return self.reply(200, state.log)
            self.note()
            if url.path in resource_places():
                if state.has("moved"):
                    return self.reply(302, location="http://localhost.localdomain.invalid/metadata")
                if state.has("slow"):
                    time.sleep(3600)
                return self.reply(200, self.resource_metadata())
            if url.path in issuer_places() and not state.has("no_metadata"):
                return self.reply(200, self.server_metadata())
            if url.path == "/authorize":
                return self.authorize(one(url.query))
            self.reply(405 if url.path == "/mcp" else 404)

        def resource_metadata(self):
            resource = "https://other.example/mcp" if state.has("wrong_resource") else self.origin + "/mcp"
            return {"resource": resource, "authorization_servers": [self.issuer], "scopes_supported": ["look"]}

        def server_metadata(self):
            token = "http://tokens.example/token" if state.has("public_endpoint") else self.origin + "/token"
            document = {
                "issuer": "https://other.example" if state.has("wrong_issuer") else self.issuer,
                "authorization_endpoint": self.origin + "/authorize",
                "token_endpoint": token,
                "registration_endpoint": self.origin + "/register",
                "revocation_endpoint": self.origin + "/revoke",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["plain"] if state.has("no_s256") else ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
            if state.has("no_registration") or flags.client_secret:
                del document["registration_endpoint"]
            return document

        def authorize(self, query):
            client = state.clients.get(query.get("client_id"))
            redirect = query.get("redirect_uri", "")
            is_loopback = redirect.startswith("http://127.0.0.1:") and redirect.endswith("/callback")
            if client is None or not is_loopback or redirect not in client.get("redirects", [redirect]):
                return self.reply(400, {"error": "invalid_client"})
            if query.get("resource") != self.origin + "/mcp" or query.get("code_challenge_method") != "S256":
                return self.reply(400, {"error": "invalid_request"})
            code = secrets.token_urlsafe(16)
            state.codes[code] = query
            answer = {"code": code, "state": query.get("state", ""), "iss": self.issuer}
            if state.has("wrong_state"):
                answer["state"] = "another"
            if state.has("wrong_iss"):
                answer["iss"] = "https://other.example"
            if state.has("no_iss"):
                del answer["iss"]
            if state.has("denied"):
                del answer["code"]
                answer["error"] = "access_denied"
            if state.has("server_error"):
                del answer["code"]
                answer |= {"error": "server_error", "error_description": "the kettle is empty"}
            self.reply(302, location=redirect + "?" + urlencode(answer))

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["content-length"])).decode()
            is_form = self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
            body = one(raw) if is_form else json.loads(raw)
            self.note(body)
            to = {"/register": self.register, "/token": self.token, "/revoke": self.revoke, "/mcp": self.mcp}
            to.get(self.path, lambda _: self.reply(404))(body)

        def register(self, body):
            if state.has("registration_refused"):
                return self.reply(400, {"error": "invalid_client_metadata", "error_description": "by invitation only"})
            client = secrets.token_urlsafe(8)
            state.clients[client] = {"redirects": body["redirect_uris"]}
            self.reply(201, {"client_id": client, **body})

        def client_is_known(self, body):
            """A client with a secret proves it, in the header or in the form."""
            basic = self.headers.get("authorization", "").removeprefix("Basic ")
            name, _, secret = base64.b64decode(basic).decode().partition(":")
            # Both are encoded within the header (RFC 6749 section 2.3.1).
            name, secret = unquote_plus(name), unquote_plus(secret)
            client = state.clients.get(body.get("client_id", name))
            wanted = (client or {}).get("secret")
            return client is not None and wanted in (None, body.get("client_secret", secret))

        def token(self, body):
            refuse = lambda error: self.reply(400, {"error": error})
            if state.has("token_moved"):
                return self.reply(307, location="http://localhost:9/token")
            if state.has("bad_token"):
                return self.reply(200, b"<p>welcome</p>", "text/html")
            if not self.client_is_known(body):
                return self.reply(401, {"error": "invalid_client"})
            if body.get("resource") != self.origin + "/mcp":
                return refuse("invalid_target")
            if body.get("grant_type") == "authorization_code":
                asked = state.codes.pop(body.get("code"), None)
                if asked is None or asked["redirect_uri"] != body.get("redirect_uri") \
                        or challenge_of(body.get("code_verifier", "")) != asked["code_challenge"]:
                    return refuse("invalid_grant")
                return self.reply(200, state.issue(asked.get("scope", "look").split()))
            scopes = state.refreshes.pop(body.get("refresh_token"), None)
            if scopes is None or state.has("refresh_refused"):
                return refuse("invalid_grant")
            self.reply(200, state.issue(scopes))

        def revoke(self, body):
            if not self.client_is_known(body):
                return self.reply(401, {"error": "invalid_client"})
            state.tokens.clear()
            state.refreshes.clear()
            self.reply(200, {})

        def mcp(self, message):
            token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
            scopes = state.tokens.get(token)
            named = f'Bearer resource_metadata="{self.origin}{resource_places()[0]}"' if flags.place == "header" else "Bearer"
            if scopes is None:
                return self.reply(401, {}, www_authenticate=named)
            if state.has("rejected") and state.n_rejected == 0 and message["method"] == "tools/list":
                state.n_rejected = 1
                del state.tokens[token]
                return self.reply(401, {}, www_authenticate='Bearer error="invalid_token"')
            if state.has("insufficient_scope") and message["method"] == "resources/list" and "write" not in scopes:
                more = named + ', error="insufficient_scope", scope="write"'
                return self.reply(403, {}, www_authenticate=more)
            if message.get("id") is None:
                return self.reply(202)
            result = {
                "initialize": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "protected", "version": "1"},
                               "capabilities": {"tools": {}, "resources": {}}},
                "tools/list": {"tools": TOOLS},
                "resources/list": {"resources": [{"uri": "note://one", "name": "one"}]},
                "resources/templates/list": {"resourceTemplates": []},
            }.get(message["method"])
            self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

        def do_DELETE(self):
            self.reply(204)

    def resource_places():
        well_known = "/.well-known/oauth-protected-resource"
        return {"header": ["/metadata"], "path": [well_known + "/mcp"], "root": [well_known], "none": []}[flags.place]

    def issuer_places():
        path = flags.issuer_path
        return [{"oauth": "/.well-known/oauth-authorization-server" + path,
                 "openid": "/.well-known/openid-configuration" + path,
                 "openid-appended": path + "/.well-known/openid-configuration"}[flags.issuer_place]]

    return Handler


def one(query):
    """The parameters of a form, each once."""
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--place", choices=["header", "path", "root", "none"], default="header",
                        help="where the metadata of the resource lies")
    parser.add_argument("--issuer-path", default="", help="such as /tenant")
    parser.add_argument("--issuer-place", choices=["oauth", "openid", "openid-appended"], default="oauth")
    parser.add_argument("--client-secret", help="of the client `given`; no other is registered then")
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler(State(parser.parse_args())))
    print(http.server_port, flush=True)
    # It ends with the process that started it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    http.serve_forever()


main()
