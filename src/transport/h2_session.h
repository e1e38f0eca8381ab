/* The two ends of HTTP/2 that a connection in the middle has: one session with the client, one with
 * the server. */
#ifndef WARD_TRANSPORT_H2_SESSION_H
#define WARD_TRANSPORT_H2_SESSION_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "base/own.h"

#define H2_OUT_BYTES (64 * 1024) /* frames made before they are written */

/* The callbacks of a session, and how much it takes at one time. */
struct h2_calls {
	nghttp2_on_begin_headers_callback begin_headers;
	nghttp2_on_header_callback header;
	nghttp2_on_frame_recv_callback frame;
	nghttp2_on_data_chunk_recv_callback chunk;
	nghttp2_on_stream_close_callback close;
	nghttp2_on_frame_send_callback sent;         /* NULL: not wanted */
	nghttp2_on_frame_not_send_callback not_sent; /* likewise */
	uint32_t streams, fields_bytes;
};

/* Makes both sessions; user is what the calls get. False: no memory, and neither is there. */
must_check bool h2_sessions_new(const struct h2_calls *calls, void *user,
				nghttp2_session **ret_down, nghttp2_session **ret_up);
/* Sends GOAWAY to the client: its open requests are answered, no more are taken. */
void h2_session_leave(nghttp2_session *down);

#endif
