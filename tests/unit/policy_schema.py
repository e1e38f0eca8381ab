#!/usr/bin/python3
"""The JSON schema and the reader say the same: policy_schema.py SCHEMA DATA_DIR VERDICT_PROGRAM

Every field gets values of every kind; each document goes through the schema and through the reader.
The schema is a help for editors, so where a shape cannot be said in it (hosts, paths, ranges of
numbers in text) it may accept what the reader refuses; those documents are listed as such. It never
refuses what the reader accepts.
"""
import json
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print('jsonschema is not installed: apt-get install python3-jsonschema')
    sys.exit(77)	# meson: skipped

VALUES = [None, True, False, 0, 1, 2, 64, 443, 70000, 4194304, 8 << 20, 1.5, -1, 1e30, '', 'none',
          'null', 'true', '1', '64', '2.5', '500m',
          '4Gi', '4gi', '1.5G', '10MB', '50%', '101%', '5m', '1h30m', '250ms', '01', '1e3', '-1',
          '4 Gi', 'x', 'host', 'A=b', '9a', 'deny_all',
          'read_only', 'read_write', 'native', 'gvisor', 'default', 'clean', 'block', 'deny',
          'basic', 'stop', 'namespaces', 'watch', 'just_in_time',
          [], {}, ['x'], [''], [1], [None], [True], ['native'], ['native', 'vm'], ['vm', 'vm'],
          ['A=b', 'TERM'], ['9a'], ['a\nb'], ['!x'], [443],
          [0], ['443'], [70000], ['a.example:443'], ['postgres=127.0.0.1:5432'], ['postgres'],
          [{'path': '/a'}], [{'path': '/a', 'mode': 'read_write', 'at': '/b'}],
          [{'path': '/a', 'mode': 'rw'}], [{'mode': 'read_only'}], [{'path': '/a', 'other': 1}],
          [{'host': 'a.example'}], [{'host': 'a.example', 'ports': [1, 2]}],
          [{'host': 'a.example', 'ports': 443}], [{'host': 'a.example', 'ports': []}],
          [{'host': 'a.example', 'mode': 'inspect', 'methods': ['GET'], 'waf': 'block'}],
          [{'host': 'a.example', 'private': 'yes'}], [{'ports': [443]}],
          [{'name': 'a', 'source': 'env:A', 'hosts': ['a.example'], 'ttl_seconds': 60}],
          [{'name': 'a'}], [{'type': 'file', 'to': '/x'}], [{'type': 'disk', 'to': '/x'}],
          {'allow': ['git'], 'deny': []}, {'forbid': ['x']}, {'allow': 'git'}]


def documents(schema):
    for key, value in schema['properties'].items():
        if 'properties' not in value:
            yield from ({key: v} for v in VALUES)
            continue
        yield from ({key: v} for v in VALUES)
        for inner in value['properties']:
            yield from ({key: {inner: v}} for v in VALUES)
    yield from ([], 'text', 3, None, {}, {'unknown': 1}, {'resources': {'unknown': 1}})


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    sample = json.loads((pathlib.Path(sys.argv[2]) / 'sample.json').read_text())
    assert validator.is_valid(sample), list(validator.iter_errors(sample))
    for path, wrong in ((['filesystem', 'mode'], 'rw'), (['resources', 'memory_limit'], '4 Gi'),
                        (['network', 'egres'], []),
                        (['credentials', 'secret_scanning'], 'yes'), (['isolation'], 'docker')):
        broken = json.loads(json.dumps(sample))
        place = broken
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = wrong
        assert not validator.is_valid(broken), path
    docs = list(documents(schema))
    lines = ''.join(json.dumps(d) + '\n' for d in docs)
    verdicts = subprocess.run([sys.argv[3]], input=lines, text=True, check=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
    assert len(verdicts) == len(docs)
    accepted = lenient = 0
    failed = 0
    for doc, verdict in zip(docs, verdicts):
        valid = validator.is_valid(doc)
        accepted += verdict == 'ok'
        if verdict == 'ok' and not valid:
            print(f'the schema refuses what the reader accepts: {json.dumps(doc)}')
            failed += 1
        elif verdict != 'ok' and valid:
            lenient += 1
            if ('out of range' not in verdict and 'host' not in verdict and 'port' not in verdict
                and 'address' not in verdict):
                print(f'the schema accepts {json.dumps(doc)}: {verdict}')
                failed += 1
    print(f'{len(docs)} documents, {accepted} accepted, {lenient} only by the schema')
    assert accepted > 300
    return 1 if failed else 0


sys.exit(main())
