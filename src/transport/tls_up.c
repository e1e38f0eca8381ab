/*
 * TLS towards servers (tls_up.h). In: connected descriptors from dial, the host's trust store as
 * bytes. Out: plain bytes both ways, from a server that has proved its name. Run by front for
 * requests without a credential and by keys for those with one, both confined: nothing here opens a
 * file. TLS 1.2 is the oldest version; renegotiation is refused.
 */
#include "transport/tls_up.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/io.h"
#include "transport/tls_init.h"
#include "transport/tls_roots.h"

/* places of the table of sessions; a newer name takes an older one's place */
#define SESSIONS 64
#define WHY_MAX 400

struct kept_session {
	SSL_SESSION *session; /* owned */
	struct host host;
	uint16_t port;
};

struct tls_trust {
	SSL_CTX *context;
	struct tls_roots *roots;
	struct kept_session sessions[SESSIONS];
};

struct tls_up {
	SSL *ssl;
	struct tls_trust *trust;
	struct host host;
	uint16_t port;
	bool open, resumed; /* open: the handshake is done */
	char why[WHY_MAX];
};

/* -- sessions */

static struct kept_session *place_of(struct tls_trust *t, const struct host *host, uint16_t port)
{
	uint32_t hash = 2166136261u ^ port;

	for (unsigned i = 0; i < host->len; i++)
		hash = (hash ^ (uint8_t)host->name[i]) * 16777619u;
	for (unsigned i = 0; i < sizeof(host->ip.bytes); i++)
		hash = (hash ^ host->ip.bytes[i]) * 16777619u;
	return &t->sessions[(hash ^ hash >> 16) % SESSIONS];
}

static bool is_for(const struct kept_session *k, const struct host *host, uint16_t port)
{
	return k->session && k->port == port && host_equal(&k->host, host);
}

/* OpenSSL has a session that can be resumed; 1: we keep it. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	const struct tls_up *u = SSL_get_app_data(ssl);
	struct kept_session *k = place_of(u->trust, &u->host, u->port);

	SSL_SESSION_free(k->session);
	*k = (struct kept_session){ .session = session, .host = u->host, .port = u->port };
	return 1;
}

/* A ticket is shown once: the server sends another one. */
static void resume(struct tls_up *u)
{
	struct kept_session *k = place_of(u->trust, &u->host, u->port);

	if (!is_for(k, &u->host, u->port))
		return;
	SSL_set_session(u->ssl, k->session);
	SSL_SESSION_free(k->session);
	*k = (struct kept_session){ 0 };
}

/* -- the trust store */

static SSL_CTX *make_context(void)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());

	if (!c)
		return NULL;
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(c, on_session);
	return c;
}

int tls_trust_new(int fd, struct tls_trust **ret, struct ward_err *e)
{
	auto_buf bytes = { 0 };
	struct tls_trust *t;
	int r = io_read_all(fd, TLS_TRUST_MAX, &bytes);

	if (r < 0)
		return ward_fail(e, -r, "cannot read the host's trust store: %s", strerror(-r));
	tls_init();
	t = calloc(1, sizeof(*t));
	if (!t)
		return ward_fail(e, ENOMEM, "out of memory");
	t->roots = bytes.len ? tls_roots_new(bytes.data, bytes.len) : NULL;
	if (!t->roots) {
		tls_trust_free(t);
		ward_fail(e, EINVAL, "the host's trust store has no certificate that can be read");
		return ward_remedy(e, "install ca-certificates, or set SSL_CERT_FILE to a file "
				      "with PEM certificates");
	}
	*ret = t;
	return 0;
}

int tls_trust_ready(struct tls_trust *t, struct ward_err *e)
{
	t->context = make_context();
	if (!t->context || !tls_roots_attach(t->roots, SSL_CTX_get_cert_store(t->context)))
		return ward_fail(e, ENOMEM, "out of memory");
	tls_roots_index(t->roots);
	return 0;
}

void tls_trust_free(struct tls_trust *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < SESSIONS; i++)
		SSL_SESSION_free(t->sessions[i].session);
	SSL_CTX_free(t->context);
	tls_roots_free(t->roots);
	free(t);
}

unsigned tls_trust_count(const struct tls_trust *t)
{
	return tls_roots_count(t->roots);
}

struct tls_roots *tls_trust_roots(const struct tls_trust *t)
{
	return t->roots;
}

/* -- a connection */

static bool offer_alpn(SSL *ssl, enum tls_alpn offer)
{
	static const uint8_t both[] = "\2h2\10http/1.1";
	const uint8_t *from = offer & TLS_ALPN_HTTP2 ? both : both + 3;
	unsigned n = offer == TLS_ALPN_BOTH ? 12 : offer == TLS_ALPN_HTTP2 ? 3 : 9;

	return SSL_set_alpn_protos(ssl, from, n) == 0; /* 0 is fine here */
}

/* Who must be at the other end. */
static bool expect(SSL *ssl, const struct host *host)
{
	X509_VERIFY_PARAM *p = SSL_get0_param(ssl);

	X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (host->kind == HOST_ADDRESS)
		return X509_VERIFY_PARAM_set1_ip(p, host->ip.bytes,
						 host->ip.family == 4 ? 4 : 16) == 1;
	return host->kind == HOST_NAME && host->len &&
	       X509_VERIFY_PARAM_set1_host(p, host->name, host->len) == 1 &&
	       SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			(void *)(uintptr_t)host->name) == 1;
}

struct tls_up *tls_up_new(struct tls_trust *t, int fd, const struct host *host, uint16_t port,
			  enum tls_alpn offer)
{
	struct tls_up *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->trust = t;
	u->host = *host;
	u->port = port;
	u->ssl = SSL_new(t->context);
	if (!u->ssl || SSL_set_fd(u->ssl, fd) != 1 || !expect(u->ssl, host) ||
	    !offer_alpn(u->ssl, offer)) {
		tls_up_free(u);
		return NULL;
	}
	SSL_set_app_data(u->ssl, u);
	SSL_set_connect_state(u->ssl);
	resume(u);
	return u;
}

void tls_up_free(struct tls_up *u)
{
	if (!u)
		return;
	if (u->ssl)
		SSL_set_quiet_shutdown(u->ssl, 1); /* else its session would not be resumed */
	if (u->ssl)
		SSL_shutdown(u->ssl);
	SSL_free(u->ssl);
	ERR_clear_error();
	free(u);
}

/* What went wrong, in words. OpenSSL's own texts are static. */
static void explain(struct tls_up *u, int saved_errno)
{
	unsigned long error = ERR_peek_last_error();
	long verified = SSL_get_verify_result(u->ssl);
	char host[HOST_TEXT];

	host_text(&u->host, host);
	if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH)
		snprintf(u->why, sizeof(u->why),
			 "the server's certificate is for a different name than %s", host);
	else if (verified != X509_V_OK)
		snprintf(u->why, sizeof(u->why), "the certificate of %s is not trusted: %s", host,
			 X509_verify_cert_error_string(verified));
	else if (error)
		snprintf(u->why, sizeof(u->why), "TLS with %s failed: %s", host,
			 ERR_reason_error_string(error) ? ERR_reason_error_string(error)
							: "unknown reason");
	else
		snprintf(u->why, sizeof(u->why), "TLS with %s failed: %s", host,
			 saved_errno ? strerror(saved_errno) : "the connection was closed");
}

/* What OpenSSL wants after an operation that was not done. */
static enum tls_say what_now(struct tls_up *u, int r)
{
	int saved_errno = errno;

	switch (SSL_get_error(u->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return TLS_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_END;
	case SSL_ERROR_SSL:
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING &&
		    u->open)
			return TLS_CUT;
		break;
	default:
		break;
	}
	explain(u, saved_errno);
	return TLS_FAILED;
}

enum tls_say tls_up_handshake(struct tls_up *u)
{
	int r;

	ERR_clear_error();
	errno = 0;
	r = SSL_do_handshake(u->ssl);
	if (r != 1)
		return what_now(u, r);
	u->open = true;
	u->resumed = SSL_session_reused(u->ssl);
	return TLS_DONE;
}

enum tls_say tls_up_read(struct tls_up *u, void *bytes, size_t n, size_t *ret_n)
{
	int r;

	*ret_n = 0;
	ERR_clear_error();
	errno = 0;
	r = SSL_read_ex(u->ssl, bytes, n, ret_n);
	return r == 1 ? TLS_DONE : what_now(u, r);
}

enum tls_say tls_up_peek(struct tls_up *u)
{
	char byte;
	size_t n;
	int r;

	ERR_clear_error();
	errno = 0;
	r = SSL_peek_ex(u->ssl, &byte, 1, &n);
	return r == 1 ? TLS_DONE : what_now(u, r);
}

enum tls_say tls_up_write(struct tls_up *u, const void *bytes, size_t n, size_t *ret_n)
{
	int r;

	*ret_n = 0;
	ERR_clear_error();
	errno = 0;
	r = SSL_write_ex(u->ssl, bytes, n, ret_n);
	return r == 1 ? TLS_DONE : what_now(u, r);
}

void tls_up_end(struct tls_up *u)
{
	if (u->open && SSL_is_init_finished(u->ssl))
		SSL_shutdown(u->ssl);
	ERR_clear_error();
}

enum tls_alpn tls_up_alpn(const struct tls_up *u)
{
	const uint8_t *name;
	unsigned n;

	SSL_get0_alpn_selected(u->ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0 ? TLS_ALPN_HTTP2 : TLS_ALPN_HTTP1;
}

bool tls_up_is_resumed(const struct tls_up *u)
{
	return u->resumed;
}

bool tls_up_is_pending(const struct tls_up *u)
{
	return SSL_pending(u->ssl) > 0;
}

const char *tls_up_why(const struct tls_up *u)
{
	return u->why;
}
