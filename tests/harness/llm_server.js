// A language model over HTTP/2 for tests: llm_server.js CERTIFICATES PORT [LOG]. See llm_server.py; usage is always 1000 and 1000. LOG: a line for each
// request that came whole.
const fs = require('fs');
const [dir, port, log] = process.argv.slice(2);
const tls = { key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem') };
let waiting = [], ended = null, asking = [];
const server = require('http2').createSecureServer({ ...tls, allowHTTP1: true }, (req, res) => {
    const end = () => res.end(JSON.stringify({ model: 'unit-1', version: req.httpVersion, encoding: req.headers['accept-encoding'], usage: { prompt_tokens: 1000, completion_tokens: 1000 } }));
    if (req.url == '/go') {
        waiting.splice(0).forEach(f => f());
        return res.end();
    }
    if (req.url == '/ended')	// answered when the stream was ended by the other side
        return ended !== null ? res.end(String(ended)) : asking.push(() => res.end(String(ended)));
    let body = '';
    req.on('data', d => body += d);
    req.on('end', () => {
        const asked = JSON.parse(body);
        if (log)
            fs.appendFileSync(log, 'llm\n');
        if (asked.wait)
            return waiting.push(end);
        if (!asked.stream)
            return end();
        res.setHeader('Content-Type', 'text/event-stream');
        res.on('close', () => { ended = 100; asking.splice(0).forEach(f => f()); });
        (function more() {
            while (!res.writableEnded && !res.destroyed && !res.stream.destroyed)
                if (!res.write('data: {"model":"short","choices":[{"delta":{"content":"word"}}]}\n\n'))
                    return res.once('drain', more);
        })();
    });
});
server.listen(parseInt(port));
