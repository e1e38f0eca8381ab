"""Makes the corpus of bench/scan.py: 400 secrets of 50 kinds in files of several formats.

None is real: all come from a seeded generator. The formats are written down here from the services'
own documentation, apart from tables/scan.def, so a mistake in a row shows as secrets not found.
"""
import base64
import json
import random
import string
import zlib

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
URL64, HEX = ALNUM + '-_', '0123456789abcdef'
BASE64 = ALNUM + '+/'
PER_KIND = 8


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def of(self, chars, n):
        return ''.join(self.random.choice(chars) for _ in range(n))

    def bytes64(self, n, url=False):
        raw = bytes(self.random.randrange(256) for _ in range(n))
        return (base64.urlsafe_b64encode(raw).rstrip(b'=') if url
                else base64.b64encode(raw)).decode()

    def crc62(self, prefix):
        body, digits = self.of(ALNUM, 30), DIGITS + UPPER + LOWER
        value, end = zlib.crc32(body.encode()), ''
        for _ in range(6):
            end, value = digits[value % 62] + end, value // 62
        return prefix + body + end

    def uuid(self):
        return '-'.join(self.of(HEX, n) for n in (8, 4, 4, 4, 12))

    def jwt(self):
        def part(value):
            text = json.dumps(value).encode()
            return base64.urlsafe_b64encode(text).rstrip(b'=').decode()
        return '.'.join((part({'alg': 'HS256', 'typ': 'JWT'}),
                         part({'sub': self.of(DIGITS, 10), 'name': self.of(LOWER, 8)}),
                         self.bytes64(32, url=True)))

    def pem(self, kind):
        body = self.bytes64(600)
        lines = [body[i:i + 64] for i in range(0, len(body), 64)]
        return '\n'.join([f'-----BEGIN {kind}-----', *lines, f'-----END {kind}-----'])

    def password(self):
        return (self.of(LOWER, 5) + self.of(UPPER, 2) + self.of(DIGITS, 3) + self.of('!#^*_', 1)
                + self.of(ALNUM, 3))


# kind -> its secret; a kind in NAMED stands in an assignment to that name
KINDS = {
    'aws id': lambda m: 'AKIA' + m.of(UPPER + '234567', 16),
    'aws secret': lambda m: m.of(BASE64, 40),
    'google api': lambda m: 'AIza' + m.of(URL64, 35),
    'google oauth': lambda m: 'GOCSPX-' + m.of(URL64, 28),
    'azure storage': lambda m: 'DefaultEndpointsProtocol=https;AccountName=' + m.of(LOWER, 8)
                               + ';AccountKey=' + m.bytes64(64),
    'azure client': lambda m: m.of(ALNUM, 3) + '8Q~' + m.of(ALNUM + '_.', 34),
    'digitalocean': lambda m: 'dop_v1_' + m.of(HEX, 64),
    'heroku': lambda m: m.uuid(),
    'netlify': lambda m: 'nfp_' + m.of(ALNUM, 36),
    'databricks': lambda m: 'dapi' + m.of(HEX, 32),
    'doppler': lambda m: 'dp.pt.' + m.of(ALNUM, 43),
    'vault': lambda m: 'hvs.' + m.of(URL64, 90),
    'terraform': lambda m: m.of(ALNUM, 14) + '.atlasv1.' + m.of(ALNUM, 67),
    'grafana': lambda m: 'glsa_' + m.of(ALNUM, 32) + '_' + m.of(HEX, 8),
    'datadog': lambda m: m.of(HEX, 32),
    'new relic': lambda m: 'NRAK-' + m.of(UPPER + DIGITS, 27),
    'sentry': lambda m: 'sntryu_' + m.of(HEX, 64),
    'dynatrace': lambda m: 'dt0c01.' + m.of(UPPER + DIGITS, 24) + '.' + m.of(UPPER + DIGITS, 64),
    'docker hub': lambda m: 'dckr_pat_' + m.of(URL64, 27),
    'github': lambda m: m.crc62('ghp_'),
    'github fine': lambda m: 'github_pat_' + m.of(ALNUM, 22) + '_' + m.of(ALNUM, 59),
    'gitlab': lambda m: 'glpat-' + m.of(URL64, 20),
    'npm': lambda m: m.crc62('npm_'),
    'pypi': lambda m: 'pypi-AgEIcHlwaS5vcmc' + m.of(URL64, 150),
    'rubygems': lambda m: 'rubygems_' + m.of(HEX, 48),
    'openai': lambda m: 'sk-proj-' + m.of(URL64, 74) + 'T3BlbkFJ' + m.of(URL64, 74),
    'anthropic': lambda m: 'sk-ant-api03-' + m.of(URL64, 93) + 'AA',
    'hugging face': lambda m: 'hf_' + m.of(LOWER + UPPER, 34),
    'groq': lambda m: 'gsk_' + m.of(ALNUM, 52),
    'slack bot': lambda m: f'xoxb-{m.of(DIGITS, 12)}-{m.of(DIGITS, 13)}-{m.of(ALNUM, 24)}',
    'slack hook': lambda m: 'https://hooks.slack.com/services/T' + m.of(UPPER + DIGITS, 10) + '/B'
                            + m.of(UPPER + DIGITS, 10) + '/' + m.of(ALNUM, 24),
    'discord hook': lambda m: 'https://discord.com/api/webhooks/' + m.of('123456789', 18) + '/'
                              + m.of(URL64, 68),
    'telegram': lambda m: m.of('123456789', 10) + ':AA' + m.of(URL64, 33),
    'twilio': lambda m: 'SK' + m.of(HEX, 32),
    'sendgrid': lambda m: 'SG.' + m.of(URL64, 22) + '.' + m.of(URL64, 43),
    'mailgun': lambda m: 'key-' + m.of(HEX, 32),
    'mailchimp': lambda m: m.of(HEX, 32) + '-us' + m.of('123456789', 1),
    'stripe': lambda m: 'sk_live_' + m.of(ALNUM, 24),
    'square': lambda m: 'sq0csp-' + m.of(URL64, 43),
    'shopify': lambda m: 'shpat_' + m.of(HEX, 32),
    'linear': lambda m: 'lin_api_' + m.of(ALNUM, 40),
    'postman': lambda m: 'PMAK-' + m.of(HEX, 24) + '-' + m.of(HEX, 34),
    'rsa key': lambda m: m.pem('RSA PRIVATE KEY'),
    'openssh key': lambda m: m.pem('OPENSSH PRIVATE KEY'),
    'jwt': lambda m: m.jwt(),
    'postgres url': lambda m: f'postgres://{m.of(LOWER, 6)}:{m.of(ALNUM, 14)}7@db.internal:5432/x',
    'mongodb url': lambda m: f'mongodb+srv://{m.of(LOWER, 6)}:{m.of(ALNUM, 13)}4@c.mongodb.net/x',
    'basic header': lambda m: 'Authorization: Basic '
                              + base64.b64encode(f'svc:{m.password()}'.encode()).decode(),
    'password': lambda m: m.password(),
    'api key': lambda m: m.of(ALNUM, 31) + '5',
}
NAMED = {'aws secret': 'aws_secret_access_key', 'heroku': 'HEROKU_API_KEY',
         'datadog': 'DATADOG_API_KEY', 'password': 'db_password', 'api key': 'service_api_key'}
FORMS = ('{name}={value}', '{name} = "{value}"', '{name}: "{value}"', "  '{name}': '{value}',",
         'export {name}="{value}"', '"{name}": "{value}",', 'set({name!r}, "{value}")',
         'const {name} = "{value}";')
FILLER = ('# Settings of the service, see the manual for each of them.', 'import os, sys, json',
          'retries = 5', 'def connect(host, port):', '    return open_socket(host, port)',
          'log_level: info', 'https://docs.example.org/setup#tokens', 'password: ${DB_PASSWORD}',
          'token = "<your token>"', 'AKIAIOSFODNN7EXAMPLE', 'api_key = os.environ["API_KEY"]')


def make(directory, seed=1):
    """Writes the files; returns [(file, line, kind)] with the first line of each secret."""
    m, planted = Maker(seed), []
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(PER_KIND):
        lines, name = [], f'part{number}.txt'
        for kind, secret in KINDS.items():
            lines += [m.random.choice(FILLER) for _ in range(m.random.randrange(1, 30))]
            value, form = secret(m), FORMS[number % len(FORMS)]
            planted.append((name, len(lines) + 1, kind))
            if '\n' in value or kind == 'basic header':
                text = value
            else:
                text = form.format(name=NAMED.get(kind, 'setting_' + m.of(LOWER, 4)), value=value)
            lines += text.split('\n')
        (directory / name).write_text('\n'.join(lines) + '\n')
    return planted
