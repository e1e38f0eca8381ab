// The stock SDK of E2B against ward serve. Nothing in it is ward's.
//
//     ward serve --dev            # prints the variables; set them here
//     npm install e2b && npx tsx quickstart.ts
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create({ timeoutMs: 120_000, envs: { NAME: 'ward' } })
try {
  process.stdout.write((await sandbox.commands.run('echo "hello from $NAME"')).stdout)

  await sandbox.files.write('sum.py', 'import sys\nprint(sum(int(line) for line in sys.stdin))\n')
  await sandbox.files.write('numbers.txt', '20\n22\n')
  const { stdout } = await sandbox.commands.run('python3 sum.py < numbers.txt')
  process.stdout.write(`sum: ${stdout}`)

  // the network is what the template's policy grants: without one, nothing
  const reached = await sandbox.commands.run('cat < /dev/tcp/192.0.2.1/80 || echo no network')
  process.stdout.write(reached.stdout)
} finally {
  await sandbox.kill()
}
