// git over HTTPS for tests: git_server.js CERTIFICATES PORT ROOT. Runs git's own http-backend for each request.
const fs = require('fs'), https = require('https'), { spawn } = require('child_process');
const [dir, port, root] = process.argv.slice(2);
https.createServer({ key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem') }, (req, res) => {
    const [path, query] = req.url.split('?');
    fs.appendFileSync(root + '/requests', `${req.method} ${req.url}\n`);
    const git = spawn('git', ['-c', 'safe.directory=*', '-c', 'http.receivepack=true', 'http-backend'], { stdio: ['pipe', 'pipe', 'ignore'], env: {
        PATH: process.env.PATH, GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'tests', HOME: root, PATH_INFO: path,
        QUERY_STRING: query || '', REQUEST_METHOD: req.method, CONTENT_TYPE: req.headers['content-type'] || '',
        HTTP_CONTENT_ENCODING: req.headers['content-encoding'] || '', GIT_PROTOCOL: req.headers['git-protocol'] || '' } });
    req.pipe(git.stdin);
    git.stdin.on('error', () => {});
    let head = Buffer.alloc(0), begun = false;
    git.stdout.on('data', d => {
        if (begun)
            return res.write(d);
        head = Buffer.concat([head, d]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0)
            return;
        begun = true;
        for (const line of head.subarray(0, end).toString().split('\r\n')) {
            const [name, value] = line.split(': ');
            if (name == 'Status')
                res.statusCode = parseInt(value);
            else
                res.setHeader(name, value);
        }
        res.write(head.subarray(end + 4));
    });
    git.stdout.on('end', () => res.end());
}).listen(port, '0.0.0.0');
