// An HTTP/2 server that sends back what it was sent, credentials too: keys_h2_server.js CERTIFICATES PORT SEEN. Each request is a line of SEEN.
const fs = require('fs'), http2 = require('http2');
const [dir, port, seen] = process.argv.slice(2);
const server = http2.createSecureServer({ key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem'), settings: { maxConcurrentStreams: 50 } });

// gRPC messages that are whole; the rest stays
function messages(bytes, each) {
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
        const n = 5 + bytes.readUInt32BE(1);
        each(bytes.subarray(0, n));
        bytes = bytes.subarray(n);
    }
    return bytes;
}

const known = [];
server.on('stream', (stream, headers) => {
    const path = headers[':path'], secret = headers.authorization || headers['x-api-key'] || path;
    const note = (body, trailers) => fs.appendFileSync(seen, JSON.stringify([path, headers, body.toString('latin1'), trailers]) + '\n');
    let body = Buffer.alloc(0), trailers = {};
    stream.on('error', () => {});
    stream.on('aborted', () => note(body, 'aborted'));
    stream.on('trailers', t => trailers = t);
    if (path.startsWith('/chat')) {	// each message is answered when it is whole
        let rest = Buffer.alloc(0);
        stream.respond({ 'content-type': 'application/grpc', 'x-back': secret }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'sent ' + secret }));
        stream.on('data', d => {
            body = Buffer.concat([body, d]);
            rest = messages(Buffer.concat([rest, d]), m => stream.write(m));
        });
        stream.on('end', () => { note(body, trailers); stream.end(); });
        return;
    }
    if (headers.authorization && !known.includes(headers.authorization))
        known.push(headers.authorization);
    if (path.startsWith('/open')) {	// everything that it has been sent, when there is a file; in frames of a few bytes
        stream.respond({ 'content-type': 'text/plain' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-known': known.join(' ') }));
        stream.write('begun.\n');
        const timer = setInterval(() => {
            if (!fs.existsSync(seen + '.go'))
                return;
            clearInterval(timer);
            for (const piece of known.join(' ').match(/.{1,7}/g))
                stream.write(piece);
            stream.end();
        }, 50);
        return;
    }
    if (path.startsWith('/early')) {	// most of the secret, and the rest when the request has ended
        stream.respond({ 'content-type': 'text/plain' });
        stream.write('y'.repeat(300) + secret.slice(0, -1));
        stream.resume();
        stream.on('end', () => stream.end(secret.slice(-1) + '.'));
        return;
    }
    stream.on('data', d => body = Buffer.concat([body, d]));
    stream.on('end', () => {
        if (stream.destroyed)
            return;
        note(body, trailers);
        if (path.startsWith('/packed')) {
            stream.respond({ 'content-encoding': 'gzip' });
            stream.end(require('zlib').gzipSync(secret));
            return;
        }
        if (path.startsWith('/large')) {
            stream.respond({ 'content-type': 'text/plain' });
            stream.end(Buffer.alloc(4 << 20, 'q'));
            return;
        }
        if (path.startsWith('/cut')) {	// as /pause, further into the secret
            stream.respond({ 'content-type': 'text/plain' });
            stream.write('y'.repeat(10) + secret.slice(0, 40));
            setTimeout(() => stream.end(secret.slice(40) + '.'), 2500);
            return;
        }
        if (path.startsWith('/pause')) {	// a piece without an end, and the rest when it is asked for again
            stream.respond({ 'content-type': 'text/plain' });
            stream.write('y'.repeat(10) + secret.slice(0, 20));
            setTimeout(() => stream.end(secret.slice(20) + '.'), 2500);
            return;
        }
        if (path.startsWith('/file')) {	// parts of it can be asked for; what was asked for is in a field
            const file = 'the beginning ' + secret + ' and the end', [from, to] = headers.range.match(/\d+/g).map(Number), last = Math.min(to, file.length - 1);
            stream.respond({ ':status': 206, 'content-range': `bytes ${from}-${last}/${file.length}`, 'content-length': String(last + 1 - from) });
            stream.end(file.slice(from, last + 1));
            return;
        }
        const text = [secret, Buffer.from('x' + secret).toString('base64'), Buffer.from(secret).toString('hex'), body.length].join('|');
        stream.respond({ 'x-back': secret, 'x-length': String(body.length) }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-trail': 'so it was ' + secret }));
        let at = 0;
        (function more() {	// in pieces of a few bytes, each a frame
            if (at >= text.length)
                return stream.end();
            stream.write(text.slice(at, at += 11), () => setImmediate(more));
        })();
    });
});
server.listen(port, '0.0.0.0');
