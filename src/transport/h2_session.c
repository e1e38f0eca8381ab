/*
 * Sessions of nghttp2 with the bounds that front and ward-keys share. In: the calls of the process
 * that has the connection. Out: a server's session (down: towards the client) and a client's (up:
 * towards the server). A window opens again only when its bytes have gone on, so windows bound what
 * is held; nothing may be pushed. Runs in front and in ward-keys.
 */
#include "transport/h2_session.h"

#define WINDOW_BYTES (128 * 1024)
#define CONNECTION_WINDOW (1024 * 1024)

static nghttp2_session *make(const struct h2_calls *c, bool server, void *user)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server ? c->streams : 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, c->fields_bytes },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	nghttp2_session_callbacks *calls = NULL;
	nghttp2_option *option = NULL;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(calls, c->begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(calls, c->header);
		nghttp2_session_callbacks_set_on_frame_recv_callback(calls, c->frame);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, c->chunk);
		nghttp2_session_callbacks_set_on_stream_close_callback(calls, c->close);
		nghttp2_session_callbacks_set_on_frame_send_callback(calls, c->sent);
		nghttp2_session_callbacks_set_on_frame_not_send_callback(calls, c->not_sent);
		nghttp2_option_set_no_auto_window_update(option, 1);
		if ((server ? nghttp2_session_server_new2(&session, calls, user, option)
			    : nghttp2_session_client_new2(&session, calls, user, option)) != 0)
			session = NULL;
	}
	nghttp2_session_callbacks_del(calls);
	nghttp2_option_del(option);
	/* a server does not say whether it would take pushes */
	if (session &&
	    (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, server ? 3 : 4) != 0 ||
	     nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
						   CONNECTION_WINDOW) != 0)) {
		nghttp2_session_del(session);
		session = NULL;
	}
	return session;
}

bool h2_sessions_new(const struct h2_calls *calls, void *user, nghttp2_session **ret_down,
		     nghttp2_session **ret_up)
{
	*ret_down = make(calls, true, user);
	*ret_up = make(calls, false, user);
	if (*ret_down && *ret_up)
		return true;
	nghttp2_session_del(*ret_down);
	nghttp2_session_del(*ret_up);
	*ret_down = *ret_up = NULL;
	return false;
}

void h2_session_leave(nghttp2_session *down)
{
	nghttp2_submit_goaway(down, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(down), NGHTTP2_NO_ERROR, NULL,
			      0);
}
