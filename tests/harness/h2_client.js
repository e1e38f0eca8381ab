// What a program does over HTTP/2 in tests: prints one JSON line for each thing. h2_client.js ORIGIN
const http2 = require('http2'), crypto = require('crypto');
const origin = process.argv[2];
const say = (name, value) => console.log(JSON.stringify([name, value]));

function ask(session, headers, body) {
    return new Promise(resolve => {
        const stream = session.request(headers, { endStream: body === undefined });
        const out = { body: '', size: 0 };
        stream.on('response', (h, flags) => { out.status = h[':status']; out.headers = h; out.flags = flags; });
        stream.on('trailers', t => out.trailers = t);
        stream.on('data', d => { out.size += d.length; if (out.size < 10000) out.body += d; });
        stream.on('error', e => out.error = e.code);
        stream.on('close', () => { out.code = stream.rstCode; resolve(out); });
        if (body !== undefined)
            stream.end(body);
    });
}

async function main() {
    let session = http2.connect(origin);
    session.on('error', e => say('session', e.code));
    let r = await ask(session, { ':path': '/open/a?x=1', 'x-stays': '2', te: 'trailers' });
    const seen = JSON.parse(r.body);
    say('get', [r.status, seen.version, seen.url, seen.headers['x-stays'], seen.headers[':authority']]);
    r = await ask(session, { ':path': '/trailers' });
    say('trailers', [r.body, r.trailers && r.trailers['x-sum']]);
    r = await ask(session, { ':path': '/open/bare' });
    say('bare', [r.headers['grpc-status'], r.flags & 1]);
    const body = crypto.randomBytes(1 << 23);
    r = await ask(session, { ':method': 'POST', ':path': '/sum' }, body);
    say('upload', r.body.split(' ').slice(0, 2).join(' ') == `${body.length} ${crypto.createHash('sha256').update(body).digest('hex')}`);
    r = await ask(session, { ':path': '/size?n=8000000' });
    say('download', r.size);
    const many = await Promise.all([...Array(100).keys()].map(i => ask(session, { ':method': 'POST', ':path': '/sum' }, 'x'.repeat(i * 100))));
    say('many', many.filter((m, i) => !m.body.startsWith(`${i * 100} `)).length);
    // one stream is answered while another is open
    const events = new Promise(resolve => {
        const stream = session.request({ ':path': '/events' });
        let got = '';
        stream.on('data', async d => { got += d; if (got == 'data: first\n\n') await ask(session, { ':path': '/go' }); });
        stream.on('close', () => resolve(got));
    });
    say('events', await events);
    r = await ask(session, { ':path': '/secret/DENIED' });
    say('path', [r.status, JSON.parse(r.body).reason, r.headers['x-ward']]);
    r = await ask(session, { ':method': 'DELETE', ':path': '/open/DENIED' });
    say('method', [r.status, JSON.parse(r.body).reason]);
    r = await ask(session, { ':path': '/open/DENIED', ':authority': 'evil.test' });
    say('authority', [r.status, JSON.parse(r.body).reason]);
    r = await ask(session, { ':method': 'POST', ':path': '/open/DENIED' }, Buffer.alloc(1 << 20));
    say('refused body', [r.status, JSON.parse(r.body).reason]);
    r = await ask(session, { ':path': '/open/..%2fsecret/DENIED' });
    say('bad path', [r.status, JSON.parse(r.body).reason]);
    r = await ask(session, { ':path': '/open/DENIED', 'x-bomb': 'b'.repeat(40000) });
    say('bomb', r.status === undefined);
    // the connection goes on after all of that
    r = await ask(session, { ':path': '/open/after' });
    say('after', r.status);
    session.close();
}
main().catch(e => { console.error(e); process.exit(1); });
