"""Requests that different servers read differently. Each row: what it is, the bytes, whether it may
reach a server.

@ stands for the number of the row: a server that sees /open/@ has seen the request, one that sees
/hidden/@ has been smuggled something. None of them may ever make a server see /hidden/."""

HIDDEN = b"GET /hidden/@ HTTP/1.1\r\nHost: web.test\r\n\r\n"
HOST = b"Host: web.test\r\n"


def post(*headers, body=b""):
    return b"POST /open/@ HTTP/1.1\r\n" + HOST + b"".join(h + b"\r\n"
                                                          for h in headers) + b"\r\n" + body


def get(*headers, line=b"GET /open/@ HTTP/1.1", host=HOST):
    return line + b"\r\n" + host + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


def chunks(body):
    return post(b"Transfer-Encoding: chunked", body=body)


CL, TE = b"Content-Length: %d", b"Transfer-Encoding: chunked"
ROWS = [
    # Content-Length beside Transfer-Encoding, and each of them twice
    ("CL.TE", post(CL % (5 + len(HIDDEN)), TE, body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE.CL", post(TE, CL % 4, body=b"2d\r\n" + HIDDEN + b"\r\n0\r\n\r\n"), False),
    ("CL.CL differ", post(CL % 0, CL % len(HIDDEN), body=HIDDEN), False),
    ("CL.CL same", post(CL % 3, CL % 3, body=b"abc"), False),
    ("CL list", post(b"Content-Length: 3, 3", body=b"abc"), False),
    ("CL list differ", post(b"Content-Length: 0, 45", body=HIDDEN), False),
    ("CL plus", post(b"Content-Length: +3", body=b"abc"), False),
    ("CL minus", post(b"Content-Length: -1", body=b"abc"), False),
    ("CL hex", post(b"Content-Length: 0x3", body=b"abc"), False),
    ("CL space inside", post(b"Content-Length: 1 0", body=b"a"), False),
    ("CL empty", post(b"Content-Length: ", body=b""), False),
    ("CL letters", post(b"Content-Length: 3abc", body=b"abc"), False),
    ("CL float", post(b"Content-Length: 3.0", body=b"abc"), False),
    ("CL huge", post(b"Content-Length: 99999999999999999999", body=b"abc"), False),
    ("CL wraps", post(b"Content-Length: 18446744073709551619", body=b"abc"), False),
    ("CL wide digits", post("Content-Length: ３".encode(), body=b"abc"), False),
    ("CL leading zeros", post(b"Content-Length: 0000000003", body=b"abc"), True),
    ("CL underscore", post(b"Content_Length: 3", TE, body=b"0\r\n\r\n" + HIDDEN), False),
    ("CL with tab", post(b"Content-Length:\t3", body=b"abc"), True),
    ("CL space before colon", post(b"Content-Length : 3", body=b"abc"), False),
    ("CL tab before colon", post(b"Content-Length\t: 3", body=b"abc"), False),
    ("CL VT", post(b"Content-Length: \x0b3", body=b"abc"), False),
    ("CL NUL", post(b"Content-Length: 3\x00", body=b"abc"), False),
    ("CL quoted", post(b'Content-Length: "3"', body=b"abc"), False),
    # Transfer-Encoding in disguise
    ("TE twice", post(TE, TE, body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE identity", post(b"Transfer-Encoding: identity", CL % 3, body=b"abc"), False),
    ("TE chunked, identity",
     post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE identity, chunked",
     post(b"Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE gzip, chunked", post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n" + HIDDEN),
     False),
    ("TE chunked chunked", post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n" + HIDDEN),
     False),
    ("TE xchunked", post(b"Transfer-Encoding: xchunked", CL % 3, body=b"abc"), False),
    ("TE chunkedx", post(b"Transfer-Encoding: chunkedx", CL % 3, body=b"abc"), False),
    ("TE empty", post(b"Transfer-Encoding: ", CL % 3, body=b"abc"), False),
    ("TE comma", post(b"Transfer-Encoding: chunked,", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE quoted", post(b'Transfer-Encoding: "chunked"', body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE space before colon", post(b"Transfer-Encoding : chunked", CL % (5 + len(HIDDEN)),
                                   body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE tab before colon", post(b"Transfer-Encoding\t: chunked", CL % (5 + len(HIDDEN)),
                                 body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE VT value", post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE NUL name", post(b"Transfer-Encoding\x00: chunked", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE NUL value", post(b"Transfer-Encoding: chunked\x00", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE leading space", post(b" Transfer-Encoding: chunked", CL % 3, body=b"abc"), False),
    ("TE underscore", post(b"Transfer_Encoding: chunked", CL % 3, body=b"abc"), False),
    ("TE folded", post(b"Transfer-Encoding:\r\n chunked", body=b"0\r\n\r\n" + HIDDEN), False),
    ("TE folded by tab", post(b"X: y\r\n\tTransfer-Encoding: chunked", CL % 3, body=b"abc"), False),
    ("TE bare LF in value", post(b"X: y\nTransfer-Encoding: chunked", CL % 3, body=b"abc"), False),
    ("TE bare CR in value", post(b"X: y\rTransfer-Encoding: chunked", CL % 3, body=b"abc"), False),
    ("TE in Connection", post(b"Connection: Transfer-Encoding", TE, body=b"0\r\n\r\n" + HIDDEN),
     False),
    ("CL in Connection", post(b"Connection: close, Content-Length", CL % 3, body=b"abc"), False),
    ("Host in Connection", get(b"Connection: Host"), False),
    ("TE in HTTP/1.0", b"POST /open/@ HTTP/1.0\r\n" + HOST + TE + b"\r\n\r\n0\r\n\r\n" + HIDDEN,
     False),
    ("TE case", post(b"tRaNsFeR-eNcOdInG: ChUnKeD", body=b"3\r\nabc\r\n0\r\n\r\n"), True),
    # chunks
    ("chunk size signed", chunks(b"+3\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk size negative", chunks(b"-1\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk size 0x", chunks(b"0x3\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk size space", chunks(b"3 \r\nabc\r\n0\r\n\r\n"), False),
    ("chunk size empty", chunks(b"\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk size wraps", chunks(b"10000000000000003\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk extension", chunks(b"3;a=b\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk extension hides", chunks(b"3;\nabc\r\n0\r\n\r\n" + HIDDEN), False),
    ("chunk bare LF", chunks(b"3\nabc\n0\n\n"), False),
    ("chunk bare CR", chunks(b"3\rabc\r0\r\r"), False),
    ("chunk too short", chunks(b"2\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk too long", chunks(b"4\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk no CRLF", chunks(b"3\r\nabc0\r\n\r\n"), False),
    ("chunk trailers", chunks(b"0\r\nContent-Length: 45\r\n\r\n" + HIDDEN), False),
    ("chunk NUL", chunks(b"3\x00\r\nabc\r\n0\r\n\r\n"), False),
    ("chunk zeros", chunks(b"0003\r\nabc\r\n000\r\n\r\n"), True),
    # request lines
    ("line bare LF", get(line=b"GET /open/@ HTTP/1.1").replace(b"\r\n", b"\n"), False),
    ("line two spaces", get(line=b"GET  /open/@ HTTP/1.1"), False),
    ("line tab", get(line=b"GET\t/open/@\tHTTP/1.1"), False),
    ("line space in path", get(line=b"GET /open/@ x HTTP/1.1"), False),
    ("line lower case version", get(line=b"GET /open/@ http/1.1"), False),
    ("line HTTP/1.2", get(line=b"GET /open/@ HTTP/1.2"), False),
    ("line HTTP/2.0", get(line=b"GET /open/@ HTTP/2.0"), False),
    ("line HTTP/0.9", b"GET /open/@\r\n\r\n", False),
    ("line no version", get(line=b"GET /open/@"), False),
    ("line leading CRLF", b"\r\n" + get(), False),
    ("line leading space", b" " + get(), False),
    ("line NUL", get(line=b"GET /open/@\x00 HTTP/1.1"), False),
    ("line CR in path", get(line=b"GET /open/@\r/x HTTP/1.1"), False),
    ("line fragment", get(line=b"GET /open/@#x HTTP/1.1"), False),
    ("line absolute other", get(line=b"GET http://evil.test/open/@ HTTP/1.1"), False),
    ("line absolute user", get(line=b"GET http://web.test@evil.test/open/@ HTTP/1.1"), False),
    ("line authority form", get(line=b"CONNECT web.test:443 HTTP/1.1"), False),
    ("line bad method", get(line=b"GE(T /open/@ HTTP/1.1"), False),
    # hosts
    ("Host missing", get(host=b""), False),
    ("Host twice", get(b"Host: evil.test"), False),
    ("Host twice same", get(b"Host: web.test"), False),
    ("Host other", get(host=b"Host: evil.test\r\n"), False),
    ("Host space before colon", get(host=b"Host : evil.test\r\nHost: web.test\r\n"), False),
    ("Host folded", get(host=b"Host: web.test\r\n evil.test\r\n"), False),
    ("Host user", get(host=b"Host: web.test@evil.test\r\n"), False),
    ("Host path", get(host=b"Host: web.test/evil\r\n"), False),
    ("Host port", get(host=b"Host: web.test:80\r\n"), False),
    ("Host comma", get(host=b"Host: web.test, evil.test\r\n"), False),
    ("Host empty", get(host=b"Host: \r\n"), False),
    ("Host NUL", get(host=b"Host: web.test\x00.evil.test\r\n"), False),
    # fields
    ("field without colon", get(b"Nonsense"), False),
    ("field without name", get(b": x"), False),
    ("field with NUL", get(b"X: a\x00b"), False),
    ("field with CR", get(b"X: a\rb"), False),
    ("field with space in name", get(b"X Y: a"), False),
    ("field of UTF-8", get("Ä: a".encode()), False),
    ("upgrade h2c", get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c",
                        b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), True),
    ("body of GET", b"GET /open/@ HTTP/1.1\r\n" + HOST + (CL % len(HIDDEN)) + b"\r\n\r\n" + HIDDEN,
     True),
    ("pipelined", get() + get(line=b"GET /open/@-second HTTP/1.1"), True),
]


def rows():
    """(name, bytes with its number, whether it may pass) of each."""
    return [(name, data.replace(b"@", b"%d" % i), passes)
            for i, (name, data, passes) in enumerate(ROWS)]
