/*
 * TLS towards programs inside (tls_down.h). In: their bytes. Out: plain bytes both ways; or what
 * was wrong with their greeting. Run by front, which has the authority's key. Sessions are resumed
 * by tickets that only this process can open.
 */
#include "transport/tls_down.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "transport/tls_init.h"

struct tls_server {
	SSL_CTX *context;
};

struct tls_down {
	SSL *ssl;
	struct host host;
	int fd;
	/* enum tls_alpn: what the real server speaks; 0: not known yet */
	uint8_t alpn;
	uint8_t wrong; /* enum tls_hello_wrong */
	bool early;    /* bytes that came before are being read */
	bool open, asking, distrusted;
};

/* -- the greeting */

/* "list, type, name": the one name of it. */
static bool read_name(const uint8_t *ext, size_t n, struct host *ret)
{
	size_t list, name;

	if (n < 5)
		return false;
	list = (size_t)ext[0] << 8 | ext[1];
	name = (size_t)ext[3] << 8 | ext[4];
	return list == n - 2 && ext[2] == 0 && name == n - 5 &&
	       host_read((const char *)ext + 5, name, ret) == HOST_FINE && ret->kind == HOST_NAME;
}

static bool offers_http2(const uint8_t *ext, size_t n)
{
	for (size_t at = 2; at < n; at += (size_t)ext[at] + 1)
		if (ext[at] == 2 && at + 2 < n && memcmp(ext + at + 1, "h2", 2) == 0)
			return true;
	return false;
}

static int on_greeting(SSL *ssl, int *alert, void *argument)
{
	struct tls_down *d = SSL_get_app_data(ssl);
	const uint8_t *ext;
	struct host host;
	size_t n;

	(void)argument;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext, &n))
		d->wrong = TLS_HELLO_NO_NAME;
	else if (!read_name(ext, n, &host) || !host_equal(&host, &d->host))
		d->wrong = TLS_HELLO_OTHER_NAME;
	if (d->wrong)
		return SSL_CLIENT_HELLO_ERROR;
	d->asking = !d->alpn &&
		    SSL_client_hello_get0_ext(
			    ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext, &n) &&
		    offers_http2(ext, n);
	return d->asking ? SSL_CLIENT_HELLO_RETRY : SSL_CLIENT_HELLO_SUCCESS;
}

static int on_alpn(SSL *ssl, const uint8_t **out, uint8_t *out_n, const uint8_t *in, unsigned n,
		   void *argument)
{
	const struct tls_down *d = SSL_get_app_data(ssl);
	static const uint8_t both[] = "\2h2\10http/1.1";
	bool h2 = d->alpn == TLS_ALPN_HTTP2;

	(void)argument;
	return SSL_select_next_proto((uint8_t **)(uintptr_t)out, out_n, h2 ? both : both + 3,
				     h2 ? 12 : 9, in, n) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

struct tls_server *tls_server_new(void)
{
	static const uint8_t id[] = "ward";
	struct tls_server *s = calloc(1, sizeof(*s));
	SSL_CTX *c;

	tls_init();
	c = s ? SSL_CTX_new(TLS_server_method()) : NULL;
	if (!c) {
		free(s);
		return NULL;
	}
	s->context = c;
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
				       SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_id_context(c, id, sizeof(id) - 1);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF); /* tickets hold all of it */
	SSL_CTX_set_num_tickets(c, 1);
	SSL_CTX_set_client_hello_cb(c, on_greeting, NULL);
	SSL_CTX_set_alpn_select_cb(c, on_alpn, NULL);
	return s;
}

/* -- a connection */

/* What came before is read first, from memory. */
static bool begin_early(struct tls_down *d, const void *early, size_t n)
{
	BIO *bio = BIO_new(BIO_s_mem());

	if (!bio || BIO_write(bio, early, (int)n) != (int)n) {
		BIO_free(bio);
		return false;
	}
	BIO_set_mem_eof_return(bio, -1);
	SSL_set0_rbio(d->ssl, bio);
	d->early = true;
	return true;
}

struct tls_down *tls_down_new(struct tls_server *s, struct ca *ca, int fd, const struct host *host,
			      const void *early, size_t early_n, unsigned alpn)
{
	struct tls_down *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fd = fd;
	d->host = *host;
	d->alpn = (uint8_t)alpn;
	d->ssl = SSL_new(s->context);
	if (!d->ssl || SSL_set_fd(d->ssl, fd) != 1 || !ca_show(ca, d->ssl, host) ||
	    (early_n && !begin_early(d, early, early_n))) {
		tls_down_free(d);
		return NULL;
	}
	SSL_set_app_data(d->ssl, d);
	SSL_set_accept_state(d->ssl);
	return d;
}

void tls_down_free(struct tls_down *d)
{
	if (!d)
		return;
	SSL_free(d->ssl);
	ERR_clear_error();
	free(d);
}

void tls_down_answer(struct tls_down *d, enum tls_alpn alpn)
{
	d->alpn = (uint8_t)alpn;
}

static void explain(struct tls_down *d)
{
	switch (ERR_GET_REASON(ERR_peek_error())) {
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
		d->distrusted = true;
		break;
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
	case SSL_R_WRONG_VERSION_NUMBER:
		d->wrong = d->wrong ? d->wrong : TLS_HELLO_NOT_TLS;
		break;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_LENGTH_MISMATCH:
	case SSL_R_BAD_EXTENSION:
		d->wrong = d->wrong ? d->wrong : TLS_HELLO_OLD;
		break;
	default:
		break;
	}
}

/* The bytes from memory are spent: what comes next is in the socket. */
static bool leave_early(struct tls_down *d)
{
	BIO *bio = d->early ? BIO_new_socket(d->fd, BIO_NOCLOSE) : NULL;

	d->early = false;
	if (bio)
		SSL_set0_rbio(d->ssl, bio);
	return bio;
}

static enum tls_say what_now(struct tls_down *d, int r)
{
	switch (SSL_get_error(d->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return TLS_READ;
	case SSL_ERROR_WANT_WRITE:
		return TLS_WRITE;
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		return TLS_ASK;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_END;
	case SSL_ERROR_SSL:
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return d->open ? TLS_CUT : TLS_FAILED;
		break;
	default:
		break;
	}
	explain(d);
	return TLS_FAILED;
}

enum tls_say tls_down_handshake(struct tls_down *d)
{
	enum tls_say say;
	int r;

	do {
		ERR_clear_error();
		r = SSL_do_handshake(d->ssl);
		say = r == 1 ? TLS_DONE : what_now(d, r);
	} while (say == TLS_READ && leave_early(d));
	d->open = say == TLS_DONE;
	return say;
}

enum tls_say tls_down_read(struct tls_down *d, void *bytes, size_t n, size_t *ret_n)
{
	enum tls_say say;
	int r;

	*ret_n = 0;
	do {
		ERR_clear_error();
		r = SSL_read_ex(d->ssl, bytes, n, ret_n);
		say = r == 1 ? TLS_DONE : what_now(d, r);
	} while (say == TLS_READ && leave_early(d));
	return say;
}

enum tls_say tls_down_peek(struct tls_down *d)
{
	enum tls_say say;
	char byte;
	size_t n;
	int r;

	do {
		ERR_clear_error();
		r = SSL_peek_ex(d->ssl, &byte, 1, &n);
		say = r == 1 ? TLS_DONE : what_now(d, r);
	} while (say == TLS_READ && leave_early(d));
	return say;
}

enum tls_say tls_down_write(struct tls_down *d, const void *bytes, size_t n, size_t *ret_n)
{
	int r;

	*ret_n = 0;
	ERR_clear_error();
	r = SSL_write_ex(d->ssl, bytes, n, ret_n);
	return r == 1 ? TLS_DONE : what_now(d, r);
}

void tls_down_end(struct tls_down *d)
{
	if (d->open && SSL_is_init_finished(d->ssl))
		SSL_shutdown(d->ssl);
	ERR_clear_error();
}

enum tls_alpn tls_down_alpn(const struct tls_down *d)
{
	const uint8_t *name;
	unsigned n;

	SSL_get0_alpn_selected(d->ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0 ? TLS_ALPN_HTTP2 : TLS_ALPN_HTTP1;
}

enum tls_hello_wrong tls_down_wrong(const struct tls_down *d)
{
	return (enum tls_hello_wrong)d->wrong;
}

bool tls_down_is_distrusted(const struct tls_down *d)
{
	return d->distrusted;
}
