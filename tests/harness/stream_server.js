// A server of tests: stream_server.js CERTIFICATES PORT [h2]. Chunks, trailers, 100-continue, events, websockets, large bodies.
const fs = require('fs'), crypto = require('crypto');
const [dir, port, version] = process.argv.slice(2);
const tls = { key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem') };
let connections = 0, count = 0;

function answer(req, res) {
    const url = new URL(req.url, 'https://x');
    if (url.pathname == '/trailers') {
        if (req.httpVersion == '1.1')
            res.setHeader('Trailer', 'X-Sum');
        res.write('one ');
        res.write('two');
        res.addTrailers({ 'X-Sum': 'checked' });
        res.end();
    } else if (url.pathname == '/sum') {
        const hash = crypto.createHash('sha256');
        let size = 0;
        req.on('data', d => { hash.update(d); size += d.length; });
        req.on('end', () => res.end(`${size} ${hash.digest('hex')} ${connections}`));
    } else if (url.pathname == '/size') {
        const block = Buffer.alloc(65536, 'w');
        let left = parseInt(url.searchParams.get('n'));
        if (url.searchParams.get('length'))
            res.setHeader('Content-Length', left);
        (function more() {
            while (left > 0) {
                const part = block.subarray(0, Math.min(left, block.length));
                left -= part.length;
                if (!res.write(part))
                    return res.once('drain', more);
            }
            res.end();
        })();
    } else if (url.pathname == '/events') {	// the second comes when the first was answered by /go
        res.setHeader('Content-Type', 'text/event-stream');
        res.write('data: first\n\n');
        waiting.push(res);
    } else if (url.pathname == '/go') {
        for (const w of waiting.splice(0))
            w.end('data: second\n\n');
        res.end('gone');
    } else if (url.pathname == '/echo') {	// as it comes
        req.on('data', d => res.write(d));
        req.on('end', () => res.end());
    } else if (url.pathname == '/open/bare' && res.stream) {	// a head and nothing behind it, as gRPC's errors
        res.stream.respond({ ':status': 200, 'grpc-status': '7' }, { endStream: true });
    } else if (url.pathname == '/count') {	// another answer each time
        res.end(`number ${++count}\n`);
    } else if (url.pathname == '/cookie') {
        res.setHeader('Set-Cookie', 'session=UNMISTAKABLECOOKIE; Path=/');
        res.end('set');
    } else if (url.pathname == '/early') {	// answers without reading
        res.statusCode = 409;
        res.end('no');
    } else {
        res.end(JSON.stringify({ method: req.method, url: req.url, headers: req.headers, version: req.httpVersion, connections }));
    }
}
const waiting = [];
const server = version == 'h2' ? require('http2').createSecureServer({ ...tls, allowHTTP1: true }, answer) : require('https').createServer(tls, answer);
server.on('secureConnection', () => connections++);
server.on('upgrade', (req, socket, head) => {
    const key = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + key + '\r\n\r\nhello');
    socket.pipe(socket);
});
server.listen(port, '0.0.0.0');
