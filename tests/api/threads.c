/* Many threads at once: boxes of their own, one box for all, and one process that several wait for
 * and signal. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define THREADS 6
#define ROUNDS 4

static struct ward_spec *spec;
static struct ward_box *shared;

static void one_exec(struct ward_box *b, int number)
{
	char script[64], text[64] = "";
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct ward_command c = { .size = sizeof(c), .argv = argv };
	struct ward_process *p = NULL;
	struct ward_error e = { 0 };
	int code = -1, out;
	ssize_t n;

	snprintf(script, sizeof(script), "echo %d; exit %d", number, number % 100);
	FINE(ward_exec(b, &c, &p, &e));
	out = ward_process_stream(p, 1, &e);
	n = read(out, text, sizeof(text) - 1);
	CHECK(n > 0 && atoi(text) == number);
	CHECK(ward_process_wait(p, -1, &code, &e) == 1 && code == number % 100);
	close(out);
	ward_process_free(p);
}

/* Starts, uses and ends boxes of its own, and uses the one of all. */
static void *work(void *argument)
{
	int number = *(int *)argument;
	struct ward_error e = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		struct ward_box *b = NULL;
		char *json = NULL;
		int code = -1;

		FINE(ward_start(spec, i % 2 ? WARD_DETACHED : 0, &b, &e));
		one_exec(b, number * 10 + i);
		one_exec(shared, number * 10 + i);
		FINE(ward_stats(shared, &json, &e));
		ward_free(json);
		if (i % 2 || number % 2) {
			FINE(ward_stop(b, 5000, &e));
			CHECK(ward_wait(b, -1, &code, &e) == 1 && code == 0);
			FINE(ward_result(b, &json, &e));
			ward_free(json);
		}
		if (i % 2)
			FINE(ward_remove(b, &e));
		ward_box_free(b);
	}
	return NULL;
}

struct crowd {
	struct ward_process *process;
	struct ward_box *box;
	atomic_int seen;
};

static void *wait_for_both(void *argument)
{
	struct crowd *c = argument;
	struct ward_error e = { 0 };
	int code = -1;

	CHECK(ward_process_wait(c->process, -1, &code, &e) == 1 && code == 42);
	CHECK(ward_wait(c->box, -1, &code, &e) == 1 && code == 0);
	atomic_fetch_add(&c->seen, 1);
	return NULL;
}

static void *signal_often(void *argument)
{
	struct crowd *c = argument;

	while (ward_process_signal(c->process, SIGUSR1, NULL) == 0)
		sched_yield();
	return NULL;
}

/* Several threads wait for one command and its box while others signal it. */
static void crowd(void)
{
	const char *const argv[] = { "sh", "-c",
				     "n=0; trap 'n=$((n+1))' USR1; echo ready; while [ $n -lt 3 ]; "
				     "do sleep 0.01; done; exit 42",
				     NULL };
	struct ward_command command = { .size = sizeof(command), .argv = argv };
	struct crowd c = { 0 };
	struct ward_error e = { 0 };
	pthread_t threads[6];
	char text[16];
	int out;

	FINE(ward_start(spec, 0, &c.box, &e));
	FINE(ward_exec(c.box, &command, &c.process, &e));
	out = ward_process_stream(c.process, 1, &e);
	CHECK(read(out, text, sizeof(text)) == 6);
	for (int i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[i], NULL, i < 4 ? wait_for_both : signal_often, &c) ==
		      0);
	for (int i = 4; i < 6; i++)
		pthread_join(threads[i], NULL);
	FINE(ward_stop(c.box, 5000, &e));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&c.seen) == 4);
	close(out);
	ward_process_free(c.process);
	ward_box_free(c.box);
}

int main(int argc, char **argv)
{
	struct ward_error e = { 0 };
	pthread_t threads[THREADS];
	int numbers[THREADS];

	CHECK(argc == 2);
	signal(SIGCHLD, SIG_IGN);
	spec = ward_spec_new();
	FINE(ward_spec_workspace(spec, argv[1], &e));
	FINE(ward_start(spec, 0, &shared, &e));
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	crowd();
	ward_box_free(shared);
	ward_spec_free(spec);
	return 0;
}
