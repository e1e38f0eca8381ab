/* TLS towards servers and the sandbox's authority: who is believed, what is resumed, what a
 * certificate may say. Both ends are in this process, over a socket pair: the server shows
 * certificates of struct ca. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/io.h"
#include "gateway_help.h"
#include "transport/ca.h"
#include "transport/tls_roots.h"
#include "transport/tls_up.h"

struct world {
	struct ca *ca;
	struct tls_trust *trust;
	SSL_CTX *server;
};

static int file_of(const char *bytes, size_t n)
{
	int fd = memfd_create("trust", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static struct tls_trust *trust_of(const struct ca *ca)
{
	struct ward_err e = { 0 };
	struct tls_trust *t = NULL;
	auto_buf pem = { 0 };
	auto_fd fd = -1;

	buf_puts(&pem, "# a comment\n-----BEGIN "
		       "CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n");
	assert_true(ca_pem(ca, &pem));
	fd = file_of(pem.data, pem.len);
	assert_int_equal(tls_trust_new(fd, &t, &e), 0);
	assert_int_equal(tls_trust_ready(t, &e), 0);
	assert_int_equal(tls_trust_count(t), 1);
	return t;
}

static int choose(SSL *ssl, const uint8_t **out, uint8_t *out_n, const uint8_t *in, unsigned n,
		  void *argument)
{
	(void)ssl;
	return SSL_select_next_proto((uint8_t **)(uintptr_t)out, out_n, argument, 3, in, n) ==
			       OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

static void begin(struct world *w, const char *const *names, size_t n)
{
	struct ward_err e = { 0 };

	assert_int_equal(ca_new(names, n, &w->ca, &e), 0);
	w->trust = trust_of(w->ca);
	w->server = SSL_CTX_new(TLS_server_method());
	SSL_CTX_set_alpn_select_cb(w->server, choose, (void *)(uintptr_t) "\2h2");
}

static void end(struct world *w)
{
	SSL_CTX_free(w->server);
	tls_trust_free(w->trust);
	ca_free(w->ca);
}

struct pair {
	int fds[2];
	SSL *server;
	struct tls_up *client;
};

static enum tls_say handshake(struct pair *p)
{
	enum tls_say say = TLS_READ;

	for (int i = 0; i < 20 && say != TLS_DONE && say != TLS_FAILED; i++) {
		say = tls_up_handshake(p->client);
		SSL_do_handshake(p->server);
	}
	return say;
}

/* The server shows itself as `shown`, the client wants `wanted`. */
static enum tls_say meet(struct world *w, struct pair *p, const char *shown, const char *wanted,
			 enum tls_alpn offer)
{
	struct host as = host_of(shown), to = host_of(wanted);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fds),
			 0);
	p->server = SSL_new(w->server);
	SSL_set_fd(p->server, p->fds[1]);
	SSL_set_accept_state(p->server);
	assert_true(ca_show(w->ca, p->server, &as));
	p->client = tls_up_new(w->trust, p->fds[0], &to, 443, offer);
	assert_non_null(p->client);
	return handshake(p);
}

static void part(struct pair *p)
{
	tls_up_free(p->client);
	SSL_free(p->server);
	close(p->fds[0]);
	close(p->fds[1]);
}

static const char *const names[] = { "a.example", "b.example" };

static void test_bytes_pass(void **state)
{
	struct world w = { 0 };
	struct pair p;
	char got[64] = "";
	size_t n;

	(void)state;
	begin(&w, names, 2);
	assert_int_equal(meet(&w, &p, "a.example", "a.example", TLS_ALPN_BOTH), TLS_DONE);
	assert_int_equal(tls_up_alpn(p.client), TLS_ALPN_HTTP2);
	assert_false(tls_up_is_resumed(p.client));
	assert_int_equal(tls_up_write(p.client, "question", 8, &n), TLS_DONE);
	assert_int_equal(n, 8);
	assert_int_equal(SSL_read(p.server, got, sizeof(got)), 8);
	assert_int_equal(tls_up_read(p.client, got, sizeof(got), &n), TLS_READ);
	assert_int_equal(SSL_write(p.server, "answer", 6), 6);
	assert_int_equal(tls_up_read(p.client, got, 2, &n), TLS_DONE);
	assert_true(tls_up_is_pending(p.client));
	assert_int_equal(tls_up_read(p.client, got + 2, 10, &n), TLS_DONE);
	assert_memory_equal(got, "answer", 6);
	SSL_shutdown(p.server);
	assert_int_equal(tls_up_read(p.client, got, sizeof(got), &n), TLS_END);
	part(&p);
	/* a server that offers nothing, and a client that does not want more */
	assert_int_equal(meet(&w, &p, "b.example", "b.example", TLS_ALPN_HTTP1), TLS_DONE);
	assert_int_equal(tls_up_alpn(p.client), TLS_ALPN_HTTP1);
	close(p.fds[1]);
	p.fds[1] = -1;
	assert_int_equal(tls_up_read(p.client, got, sizeof(got), &n), TLS_CUT);
	part(&p);
	end(&w);
}

static void test_sessions_are_resumed(void **state)
{
	struct world w = { 0 };
	struct pair p;
	char got[8];
	size_t n;

	(void)state;
	begin(&w, names, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(meet(&w, &p, "a.example", "a.example", TLS_ALPN_HTTP1), TLS_DONE);
		assert_int_equal(tls_up_is_resumed(p.client), i > 0);
		/* takes the ticket */
		assert_int_equal(tls_up_read(p.client, got, sizeof(got), &n), TLS_READ);
		part(&p);
	}
	/* the session of one name is not shown to another */
	assert_int_equal(meet(&w, &p, "b.example", "b.example", TLS_ALPN_HTTP1), TLS_DONE);
	assert_false(tls_up_is_resumed(p.client));
	part(&p);
	end(&w);
}

static void test_nobody_else_is_believed(void **state)
{
	struct world w = { 0 }, other = { 0 };
	struct pair p;

	(void)state;
	begin(&w, names, 2);
	begin(&other, names, 2);
	assert_int_equal(meet(&w, &p, "b.example", "a.example", TLS_ALPN_BOTH), TLS_FAILED);
	assert_string_equal(tls_up_why(p.client),
			    "the server's certificate is for a different name than a.example");
	part(&p);
	/* not of the constraints */
	assert_int_equal(meet(&w, &p, "c.example", "c.example", TLS_ALPN_BOTH), TLS_FAILED);
	assert_non_null(strstr(tls_up_why(p.client),
			       "c.example is not trusted: permitted subtree violation"));
	part(&p);
	tls_trust_free(w.trust);
	w.trust = trust_of(other.ca);
	assert_int_equal(meet(&w, &p, "a.example", "a.example", TLS_ALPN_BOTH), TLS_FAILED);
	assert_non_null(strstr(tls_up_why(p.client),
			       "a.example is not trusted: unable to get local issuer certificate"));
	part(&p);
	end(&w);
	end(&other);
}

static void test_trust_store_must_have_something(void **state)
{
	struct ward_err e = { 0 };
	struct tls_trust *t = NULL;
	auto_fd empty = file_of("nothing\n", 8);

	(void)state;
	assert_int_equal(tls_trust_new(empty, &t, &e), -EINVAL);
	assert_non_null(strstr(e.why, "no certificate"));
	assert_non_null(strstr(e.remedy, "ca-certificates"));
}

/* One certificate in the spellings that trust stores have, between what is none. */
static void test_trust_store_spellings(void **state)
{
	static const char old[] = "-----BEGIN X509 CERTIFICATE-----";
	struct ward_err e = { 0 };
	struct tls_roots *r;
	struct ca *ca = NULL;
	auto_buf pem = { 0 }, all = { 0 };
	unsigned char *der = NULL;
	int n;

	(void)state;
	assert_int_equal(ca_new(names, 2, &ca, &e), 0);
	assert_true(ca_pem(ca, &pem));
	n = i2d_X509(ca_certificate(ca), &der);
	buf_puts(&all, "Certificate:\n    Data: -----BEGIN nothing\n-----BEGIN CERTIFICATE "
		       "REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
	buf_add(&all, pem.data, pem.len);
	for (const char *c = pem.data; *c; c++) {
		buf_add(&all, *c == '\n' ? "\r" : "", *c == '\n');
		buf_add(&all, c, 1);
	}
	buf_puts(&all, "-----BEGIN CERTIFICATE-----\nMII*\n-----END CERTIFICATE-----\n");
	buf_puts(&all, old);
	buf_add(&all, pem.data + strlen(old) - 5, pem.len - strlen(old) + 5);
	buf_add(&all, pem.data, pem.len / 2); /* cut off */
	r = tls_roots_new(all.data, all.len);
	assert_non_null(r);
	assert_int_equal(tls_roots_count(r), 3);
	for (unsigned i = 0; i < 3; i++) {
		size_t len;
		const unsigned char *found = tls_roots_get(r, i, &len);

		assert_int_equal(len, n);
		assert_memory_equal(found, der, len);
	}
	tls_roots_free(r);
	OPENSSL_free(der);
	ca_free(ca);
}

static void test_every_name_and_what_lies_below(void **state)
{
	static const char *const suffix[] = { "example" };
	struct world w = { 0 };
	struct pair p;

	(void)state;
	begin(&w, suffix, 1);
	assert_int_equal(meet(&w, &p, "deep.er.example", "deep.er.example", TLS_ALPN_BOTH),
			 TLS_DONE);
	part(&p);
	end(&w);
	begin(&w, NULL, 0);
	assert_int_equal(meet(&w, &p, "any.thing.test", "any.thing.test", TLS_ALPN_BOTH), TLS_DONE);
	part(&p);
	end(&w);
}

static void test_what_the_authority_may(void **state)
{
	struct ward_err e = { 0 };
	struct ca *ca = NULL;
	X509 *x;

	(void)state;
	assert_int_equal(ca_new(names, 2, &ca, &e), 0);
	x = ca_certificate(ca);
	assert_int_equal(X509_check_ca(x), 1);
	assert_int_equal(X509_get_pathlen(x), 0);
	assert_int_equal(X509_get_key_usage(x), KU_KEY_CERT_SIGN);
	assert_int_equal(X509_cmp_time(X509_get0_notAfter(x), &(time_t){ time(NULL) + 8 * 86400 }),
			 -1);
	assert_int_equal(X509_get_extension_flags(x) & (EXFLAG_INVALID | EXFLAG_CRITICAL), 0);
	ca_free(ca);
	assert_int_equal(ca_new(names, CA_NAMES_MAX + 1, &ca, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_pass),
		cmocka_unit_test(test_sessions_are_resumed),
		cmocka_unit_test(test_nobody_else_is_believed),
		cmocka_unit_test(test_trust_store_must_have_something),
		cmocka_unit_test(test_trust_store_spellings),
		cmocka_unit_test(test_every_name_and_what_lies_below),
		cmocka_unit_test(test_what_the_authority_may),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
