/*
 * TLS towards a collector. In: a connected descriptor, certificates that were read before the
 * process was locked up. Out: plain bytes both ways, to a server that has proved the name that the
 * policy says. TLS 1.2 is the oldest version; there is no way to leave the check out. Run by
 * ward-audit in the process of one sink.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>

#include "audit/sink.h"
#include "base/io.h"

#define HANDSHAKE_MS 10000

static int tls_error(const struct sink *s, const char *what, struct ward_err *e)
{
	long verdict = s->ssl ? SSL_get_verify_result(s->ssl) : X509_V_OK;
	unsigned long code = ERR_peek_last_error();
	const char *why = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
			  : code               ? ERR_reason_error_string(code)
					       : NULL;

	ERR_clear_error();
	return ward_fail(e, EPROTO, "%s: %s: %s", s->policy->to, what,
			 why ? why : "the connection was closed");
}

int sink_tls_prepare(struct sink *s, struct ward_err *e)
{
	const struct policy_sink *p = s->policy;

	s->tls = SSL_CTX_new(TLS_client_method());
	if (!s->tls)
		return ward_fail(e, ENOMEM, "out of memory");
	SSL_CTX_set_min_proto_version(s->tls, TLS1_2_VERSION);
	SSL_CTX_set_options(s->tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(s->tls,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(s->tls, SSL_VERIFY_PEER, NULL);
	if (p->ca ? SSL_CTX_load_verify_file(s->tls, p->ca) != 1
		  : SSL_CTX_set_default_verify_paths(s->tls) != 1)
		return ward_fail(e, EINVAL, "%s: cannot read a certificate from %s", p->to,
				 p->ca ? p->ca : "the host's trust store");
	if (p->cert && (SSL_CTX_use_certificate_chain_file(s->tls, p->cert) != 1 ||
			SSL_CTX_use_PrivateKey_file(s->tls, p->key, SSL_FILETYPE_PEM) != 1 ||
			SSL_CTX_check_private_key(s->tls) != 1))
		return ward_fail(e, EINVAL,
				 "%s: %s and %s are not a certificate and its key in PEM form",
				 p->to, p->cert, p->key);
	return 0;
}

static short wanted(const struct sink *s, int r)
{
	int error = SSL_get_error(s->ssl, r);

	return error == SSL_ERROR_WANT_READ ? POLLIN : error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
}

static int expect_name(struct sink *s)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, s->policy->host, address) == 1 ||
	    inet_pton(AF_INET6, s->policy->host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), s->policy->host);
	SSL_set_hostflags(s->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set_tlsext_host_name(s->ssl, s->policy->host) == 1 &&
	       SSL_set1_host(s->ssl, s->policy->host) == 1;
}

int sink_tls_open(struct sink *s, struct ward_err *e)
{
	uint64_t until = io_now_ms() + HANDSHAKE_MS;
	int r;

	s->ssl = SSL_new(s->tls);
	if (!s->ssl || SSL_set_fd(s->ssl, s->fd) != 1 || !expect_name(s))
		return ward_fail(e, ENOMEM, "out of memory");
	while ((r = SSL_connect(s->ssl)) != 1) {
		struct pollfd polled = { .fd = s->fd, .events = wanted(s, r) };
		uint64_t now = io_now_ms();

		if (!polled.events)
			return tls_error(s, "no TLS", e);
		if (now >= until || poll(&polled, 1, (int)(until - now)) == 0)
			return ward_fail(e, ETIMEDOUT, "%s: no answer from the server",
					 s->policy->to);
	}
	return 0;
}

ssize_t sink_tls_write(struct sink *s, const char *bytes, size_t n, short *ret_events,
		       struct ward_err *e)
{
	int r = SSL_write(s->ssl, bytes, n > INT32_MAX ? INT32_MAX : (int)n);

	if (r > 0)
		return r;
	*ret_events = wanted(s, r);
	return *ret_events ? -EAGAIN : tls_error(s, "cannot be written", e);
}

ssize_t sink_tls_read(struct sink *s, char *bytes, size_t n, short *ret_events, struct ward_err *e)
{
	int r = SSL_read(s->ssl, bytes, (int)n), error;

	if (r > 0)
		return r;
	*ret_events = wanted(s, r);
	if (*ret_events)
		return -EAGAIN;
	error = SSL_get_error(s->ssl, r);
	/* an end without a goodbye is one, too: it came in order, or TCP would say so */
	if (error == SSL_ERROR_ZERO_RETURN ||
	    ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ERR_clear_error();
		return 0;
	}
	return tls_error(s, "cannot be read", e);
}

void sink_tls_end(struct sink *s)
{
	SSL_shutdown(s->ssl);
}

void sink_tls_close(struct sink *s)
{
	SSL_free(s->ssl);
	s->ssl = NULL;
	ERR_clear_error();
}
