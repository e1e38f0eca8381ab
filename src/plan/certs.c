/*
 * Whom a sandbox trusts (certs.h). In: the host's trust store, and what the gateway wrote: its
 * authority's certificate alone, behind the store's, and both for Java. Out: the entries of one
 * directory, made in the sandbox's own memory by the stage `trust`. The host's links by hash stay,
 * so that what is not inspected is verified as ever. Runs in the supervisor, before the sandbox is
 * built.
 */
#include "plan/certs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "protocol/gateway.h"

#define LINKS_MAX 2000
#define OWN_FILES 5 /* beside the links */
#define BROWSERS "browsers.json"

#define JAVA_OPTIONS                                                                               \
	"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" CERTS_DIR                                  \
	"/java.jks -Djavax.net.ssl.trustStoreType=JKS "                                            \
	"-Djavax.net.ssl.trustStorePassword=changeit"

const char *const certs_env[] = { "SSL_CERT_FILE=" CERTS_BUNDLE,
				  "SSL_CERT_DIR=" CERTS_SYSTEM,
				  "CURL_CA_BUNDLE=" CERTS_BUNDLE,
				  "REQUESTS_CA_BUNDLE=" CERTS_BUNDLE,
				  "PIP_CERT=" CERTS_BUNDLE,
				  "GIT_SSL_CAINFO=" CERTS_BUNDLE,
				  "NODE_EXTRA_CA_CERTS=" CERTS_DIR "/ward.pem",
				  "CARGO_HTTP_CAINFO=" CERTS_BUNDLE,
				  "AWS_CA_BUNDLE=" CERTS_BUNDLE,
				  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=" CERTS_BUNDLE,
				  "NIX_SSL_CERT_FILE=" CERTS_BUNDLE,
				  "HTTPLIB2_CA_CERTS=" CERTS_BUNDLE,
				  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE=" CERTS_BUNDLE,
				  "DENO_CERT=" CERTS_DIR "/ward.pem",
				  JAVA_OPTIONS,
				  NULL };

#define BUNDLE (&(CERTS_DIR "/ca-certificates.crt")[1])
#define POLICY (&(CERTS_DIR "/" BROWSERS)[1])

/* Chromium trusts what is built into it, and what a policy of the machine names
 * (tables/root.def). */
const struct certs_place certs_places[] = {
	{ BUNDLE, "etc/pki/tls/certs/ca-bundle.crt" },
	{ BUNDLE, "etc/pki/tls/cert.pem" },
	{ BUNDLE, "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem" },
	{ BUNDLE, "etc/ssl/cert.pem" },
	{ BUNDLE, "etc/ssl/ca-bundle.pem" },
	{ POLICY, "etc/chromium/policies/managed/ward-trust.json" },
	{ POLICY, "etc/chromium-browser/policies/managed/ward-trust.json" },
	{ POLICY, "etc/opt/chrome/policies/managed/ward-trust.json" },
	{ POLICY, "etc/opt/chrome_for_testing/policies/managed/ward-trust.json" },
	{ NULL, NULL },
};

int certs_open_store(struct ward_err *e)
{
	static const char *const places[] = { CERTS_BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt",
					      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
					      "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char *said = getenv("SSL_CERT_FILE");
	int fd = -1;

	if (said && *said) {
		fd = open(said, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			ward_fail_errno(e, "SSL_CERT_FILE: cannot open %s", said);
			return ward_remedy(e,
					   "unset it, or set it to a file with PEM certificates");
		}
		return fd;
	}
	for (size_t i = 0; i < ARRAY_LEN(places) && fd < 0; i++)
		fd = open(places[i], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ward_fail(e, ENOENT,
			  "rules with mode inspect need the host's trust store, but there is none");
		return ward_remedy(e, "install ca-certificates, or set SSL_CERT_FILE to a file "
				      "with PEM certificates");
	}
	return fd;
}

/* The links by hash and by name, as the host has them; what they lead to is beneath /usr, or in the
 * directory itself. */
int certs_add_links(struct certs *t, struct ward_err *e)
{
	auto_dir dir = opendir(CERTS_SYSTEM);
	struct dirent *d;

	t->entries = calloc(OWN_FILES + LINKS_MAX, sizeof(*t->entries));
	if (!t->entries)
		return ward_fail(e, ENOMEM, "out of memory");
	t->count = OWN_FILES; /* they are made first, and win over a link of the same name */
	while (dir && t->count < OWN_FILES + LINKS_MAX && (d = readdir(dir))) {
		char target[1024];
		ssize_t n = d->d_type == DT_LNK
				    ? readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1)
				    : -1;

		if (n <= 0 || n == (ssize_t)sizeof(target) - 1)
			continue;
		target[n] = '\0';
		strv_add(&t->strings, d->d_name);
		strv_add(&t->strings, target);
		if (t->strings.failed)
			break;
		t->entries[t->count++] =
			(struct certs_entry){ .name = t->strings.items[t->strings.len - 2],
					      .link = t->strings.items[t->strings.len - 1] };
	}
	return t->strings.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* One certificate in PEM as {"CACertificates": ["BASE64"]}: the same letters without lines. */
static bool write_browsers(const char *pem, size_t n, struct buf *out)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----",
			  end[] = "-----END CERTIFICATE-----";
	const char *at = memmem(pem, n, begin, sizeof(begin) - 1);
	const char *stop = memmem(pem, n, end, sizeof(end) - 1);

	if (!at || !stop || stop < at)
		return false;
	buf_puts(out, "{\"CACertificates\": [\"");
	for (at += sizeof(begin) - 1; at < stop; at++)
		if ((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
		    (*at >= 'a' && *at <= 'z') || *at == '+' || *at == '/' || *at == '=')
			buf_add(out, at, 1);
	buf_puts(out, "\"]}\n");
	return !out->failed;
}

int certs_fill(struct certs *t, int fd, struct ward_err *e)
{
	struct gate_trust head;
	struct stat st;
	const char *at;
	uint64_t sum;

	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(head) || st.st_size > 64 << 20)
		return ward_fail(e, EPROTO, "the gateway sent an invalid answer");
	t->map_bytes = (size_t)st.st_size;
	t->map = mmap(NULL, t->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (t->map == MAP_FAILED) {
		t->map = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	memcpy(&head, t->map, sizeof(head));
	sum = sizeof(head) + (uint64_t)head.own_bytes + head.bundle_bytes + head.java_bytes;
	if (head.magic != GATE_MAGIC || sum != t->map_bytes ||
	    !(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE))
		return ward_fail(e, EPROTO, "the gateway sent an invalid answer");
	at = (const char *)t->map + sizeof(head);
	snprintf(t->name, sizeof(t->name), "%08x.0", head.hash);
	t->entries[0] = (struct certs_entry){ t->name, NULL, at, head.own_bytes };
	t->entries[1] = (struct certs_entry){ "ward.pem", NULL, at, head.own_bytes };
	t->entries[2] = (struct certs_entry){ "ca-certificates.crt", NULL, at + head.own_bytes,
					      head.bundle_bytes };
	t->entries[3] =
		(struct certs_entry){ "java.jks", NULL, at + head.own_bytes + head.bundle_bytes,
				      head.java_bytes };
	if (!write_browsers(at, head.own_bytes, &t->browsers))
		return ward_fail(e, EPROTO, "the gateway's certificate cannot be read");
	t->entries[4] = (struct certs_entry){ BROWSERS, NULL, t->browsers.data, t->browsers.len };
	return 0;
}

void certs_free(struct certs *t)
{
	if (!t)
		return;
	if (t->map)
		munmap(t->map, t->map_bytes);
	free(t->entries);
	buf_free(&t->browsers);
	strv_free(&t->strings);
	free(t);
}
