/*
 * What goes over the port: frames of the host are taken, frames of the guest's are made when those
 * before have gone out. Nothing is queued: a command's output stays in its pipe until there is
 * credit and room for it, its input waits in at most one window. The host is trusted here; frames
 * about a channel that has ended meanwhile are left alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "protocol/guest.h"
#include "vm/guest/agent.h"

/* ---- from the host ---- */

void streams_feed(struct job *j)
{
	while (j->pending_len && j->in_fd >= 0) {
		ssize_t n = write(j->in_fd, j->pending + j->pending_at, j->pending_len);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* its reader is gone */
			close(j->in_fd);
			j->in_fd = -1;
			j->tell_broken = true;
			break;
		}
		j->pending_at += (size_t)n;
		j->pending_len -= (size_t)n;
		j->owed += (uint32_t)n;
	}
	j->pending_at = 0;
	j->pending_len = 0;
	free(j->pending); /* idle jobs cost nothing */
	j->pending = NULL;
	if (j->in_eof && j->in_fd >= 0) {
		if (j->terminal && write(j->in_fd, "\4", 1) < 0)
			j->tell_broken = true;
		close(j->in_fd);
		j->in_fd = -1;
	}
}

static void take_data(struct job *j, const struct vm_frame *frame)
{
	struct vm_frame rest = *frame, *f = &rest;
	ssize_t done;

	if (j->in_fd < 0 || j->in_eof || f->len > VM_WINDOW_BYTES - j->pending_len)
		return;
	if (!j->pending_len) { /* mostly there is room: nothing to keep */
		done = write(j->in_fd, f->payload, f->len);
		done = done > 0 ? done : 0;
		j->owed += (uint32_t)done;
		f->payload += done;
		f->len -= (size_t)done;
		if (!f->len)
			return;
	}
	if (!j->pending) {
		j->pending = malloc(VM_WINDOW_BYTES);
		j->pending_at = j->pending_len = 0;
	}
	if (!j->pending)
		return;
	if (j->pending_at + j->pending_len + f->len > VM_WINDOW_BYTES) {
		memmove(j->pending, j->pending + j->pending_at, j->pending_len);
		j->pending_at = 0;
	}
	memcpy(j->pending + j->pending_at + j->pending_len, f->payload, f->len);
	j->pending_len += f->len;
	streams_feed(j);
}

static void take_words(struct agent *a, const struct vm_frame *f)
{
	struct job *j = &a->jobs[f->channel];

	if (f->channel)
		rehearse_stop(a);
	if (j->active || f->len > VM_WORDS_MAX - j->words_len ||
	    !job_make_room(a, f->channel, j->words_len + f->len))
		return;
	memcpy(j->words + j->words_len, f->payload, f->len);
	j->words_len += f->len;
}

/* The leader of a terminal's session passes signals on; what cannot be passed on goes to the
 * processes in the terminal's foreground. */
static void take_signal(struct job *j, uint32_t number)
{
	int group = 0;

	if (!j->active || j->exited || j->pid <= 0 || number < 1 || number > 64)
		return;
	if (j->terminal && number != SIGKILL) {
		kill(j->pid, (int)number);
		return;
	}
	if (j->terminal && ioctl(j->out_fds[0], TIOCGPGRP, &group) == 0 && group > 1)
		kill(-group, SIGKILL);
	if (kill(-j->pid, (int)number) < 0)
		kill(j->pid, (int)number); /* it has not made its session yet */
}

static void take_resize(struct job *j, const struct vm_frame *f)
{
	struct vm_resize r;
	struct winsize size;

	memcpy(&r, f->payload, sizeof(r));
	size = (struct winsize){ .ws_row = r.rows, .ws_col = r.columns };
	if (j->terminal)
		ioctl(j->out_fds[0], TIOCSWINSZ, &size);
}

static void close_out(struct job *j, unsigned stream)
{
	if (j->out_fds[stream] >= 0)
		close(j->out_fds[stream]);
	j->out_fds[stream] = -1;
}

static void take_about_job(struct agent *a, const struct vm_frame *f)
{
	struct job *j = &a->jobs[f->channel];
	struct vm_start s;

	if (f->type == VM_WORDS)
		take_words(a, f);
	if (f->type == VM_START) {
		memcpy(&s, f->payload, sizeof(s));
		job_start(a, f->channel, &s);
	}
	if (!j->active)
		return;
	if (f->type == VM_DATA)
		take_data(j, f);
	if (f->type == VM_WINDOW && wire_number(f) <= VM_WINDOW_BYTES - j->credit[f->stream])
		j->credit[f->stream] += wire_number(f);
	if (f->type == VM_EOF) {
		j->in_eof = true;
		streams_feed(j);
	}
	if (f->type == VM_BROKEN && f->stream)
		close_out(j, f->stream);
	if (f->type == VM_SIGNAL)
		take_signal(j, wire_number(f));
	if (f->type == VM_RESIZE)
		take_resize(j, f);
}

static void take(struct agent *a, struct vm_frame *f)
{
	struct vm_time t;

	if (f->channel) {
		if (a->rehearsal.speaking)
			f->channel = 0;
		take_about_job(a, f);
		return;
	}
	if (f->type == VM_TIME) {
		memcpy(&t, f->payload, sizeof(t));
		time_set(&t);
	}
	if (f->type == VM_SETUP) {
		memcpy(&a->setup, f->payload, sizeof(a->setup));
		limits_apply(a);
		a->greeted = true;
	}
	if (f->type == VM_ECHO) {
		a->echoing = true;
		a->echo_len = f->len;
		memcpy(a->echo, f->payload, f->len);
	}
	if (f->type == VM_QUIESCE) {
		a->quiescing = a->ending = true;
		kill(-1, SIGKILL);
	}
}

void streams_take_all(struct agent *a)
{
	struct vm_frame f;
	size_t at = 0;
	long used;

	for (; (used = wire_parse(a->in + at, a->in_len - at, false, &f)) > 0; at += (size_t)used)
		take(a, &f);
	if (used < 0)
		boot_die("the host sent what is no frame");
	memmove(a->in, a->in + at, a->in_len - at);
	a->in_len -= at;
}

/* ---- to the host ---- */

static bool say(struct agent *a, enum vm_type type, unsigned channel, unsigned stream,
		const void *payload, size_t n)
{
	a->out_len += wire_put(a->out + a->out_len, type, channel, stream, payload, n);
	return true;
}

static bool say_number(struct agent *a, enum vm_type type, unsigned channel, uint32_t number)
{
	return say(a, type, channel, 0, &number, sizeof(number));
}

void streams_close_spent(struct agent *a)
{
	while (a->spent)
		close(a->spent_fds[--a->spent]);
}

/* A piece of what the job wrote. */
static bool say_output(struct agent *a, unsigned channel, unsigned stream)
{
	struct job *j = &a->jobs[channel];
	size_t want = j->credit[stream] < VM_DATA_MAX ? j->credit[stream] : VM_DATA_MAX;
	int fd = j->out_fds[stream], left = 0;
	ssize_t n = -1;

	if (fd < 0 || (j->fresh && !j->exited))
		return false;
	errno = EAGAIN;
	if (want)
		n = read(fd, wire_payload(a->out + a->out_len), want);
	else if (j->exited && ioctl(fd, FIONREAD, &left) == 0 && left)
		return false; /* it has ended, but this must be reported first */
	if (n > 0) {
		j->credit[stream] -= (uint32_t)n;
		return say(a, VM_DATA, channel, stream, wire_payload(a->out + a->out_len),
			   (size_t)n);
	}
	if (n < 0 && errno == EAGAIN && !j->exited)
		return false;
	if (a->spent == sizeof(a->spent_fds) / sizeof(a->spent_fds[0]))
		streams_close_spent(a);
	a->spent_fds[a->spent++] = fd;
	j->out_fds[stream] = -1;
	return say(a, VM_EOF, channel, stream, NULL, 0);
}

static bool say_stopped(struct agent *a, unsigned channel)
{
	struct job *j = &a->jobs[channel];
	struct guest_message m;

	return j->stopped_fd >= 0 && read(j->stopped_fd, &m, sizeof(m)) == sizeof(m) &&
	       say_number(a, VM_STOPPED, channel, (uint32_t)m.a);
}

static bool say_about_job(struct agent *a, unsigned channel)
{
	struct job *j = &a->jobs[channel];
	uint32_t owed = j->owed;
	int status = j->status;

	if (!j->active)
		return false;
	if (j->tell_broken) {
		j->tell_broken = false;
		j->owed = 0;
		return say(a, VM_BROKEN, channel, 0, NULL, 0);
	}
	if (owed >= VM_WINDOW_BYTES / 4 && !j->in_eof) {
		j->owed = 0;
		return say_number(a, VM_WINDOW, channel, owed);
	}
	if (say_stopped(a, channel))
		return true;
	for (unsigned i = 0; i < VM_STREAMS; i++)
		if (say_output(a, channel, i))
			return true;
	if (!j->exited || j->out_fds[0] >= 0 || j->out_fds[1] >= 0 || j->out_fds[2] >= 0)
		return false;
	job_clear(a, channel);
	return say_number(a, VM_EXIT, channel,
			  (uint32_t)status |
				  (status == SIGKILL && limits_spent(a) ? VM_EXIT_SPENT : 0));
}

static bool say_error(struct agent *a)
{
	struct vm_error e = { .code = (uint32_t)a->error_code };

	if (!a->error_code)
		return false;
	a->error_code = 0;
	return say(a, VM_ERROR, a->error_channel, 0, &e, sizeof(e));
}

bool streams_next(struct agent *a)
{
	size_t before = a->out_len;
	bool busy = false;

	if (say_error(a))
		return true;
	if (a->echoing) {
		a->echoing = false;
		return say(a, VM_ECHO, 0, 0, a->echo, a->echo_len);
	}
	for (unsigned i = 1; i <= a->channels; i++) {
		unsigned channel = (a->next + i) % a->channels;

		while (say_about_job(a, channel)) {
			a->next = channel;
			if (channel)
				return true;
			a->out_len = before; /* to no process */
			rehearse_heard(a);
		}
		busy |= a->jobs[channel].active;
	}
	if (a->quiescing && a->childless && !busy) {
		a->quiescing = false;
		return say(a, VM_QUIET, 0, 0, NULL, 0);
	}
	return false;
}
