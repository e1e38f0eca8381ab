/*
 * pool: several threads, each with a sandbox of its own, share a list of jobs.
 *
 *	cc pool.c $(pkg-config --cflags --libs ward) -pthread -o pool && ./pool DIRECTORY THREADS JOBS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ward/ward.h>

static struct ward_spec *spec; /* only read once the threads run */
static atomic_int next, failed;
static int jobs;

static int run_job(struct ward_box *box, int job)
{
	char text[64], got[64] = "";
	const char *const argv[] = { "sh", "-c", text, NULL };
	struct ward_command command = { .size = sizeof(command), .argv = argv };
	struct ward_process *process;
	int code = -1, out;
	size_t n = 0;
	ssize_t more;

	snprintf(text, sizeof(text), "echo $((%d * %d)); exit %d", job, job, job % 7);
	if (ward_exec(box, &command, &process, NULL) < 0)
		return -1;
	out = ward_process_stream(process, 1, NULL);
	while (n < sizeof(got) - 1 && (more = read(out, got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)more;
	close(out);
	if (ward_process_wait(process, -1, &code, NULL) != 1 || code != job % 7 ||
	    atoi(got) != job * job)
		code = -1;
	ward_process_free(process);
	return code;
}

static void *work(void *unused)
{
	struct ward_error e = { 0 };
	struct ward_box *box;
	int job;

	(void)unused;
	if (ward_start(spec, 0, &box, &e) < 0) {
		fprintf(stderr, "pool: %s: %s\n", e.what, e.why);
		atomic_fetch_add(&failed, 1);
		return NULL;
	}
	while ((job = atomic_fetch_add(&next, 1)) < jobs)
		if (run_job(box, job) < 0)
			atomic_fetch_add(&failed, 1);
	ward_box_free(box);
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc == 4 ? atoi(argv[2]) : 0;
	pthread_t threads[64];
	int i;

	spec = ward_spec_new();
	if (count < 1 || count > 64 || !spec || ward_spec_workspace(spec, argv[1], NULL) < 0) {
		fprintf(stderr, "usage: pool DIRECTORY THREADS JOBS\n");
		return 2;
	}
	jobs = atoi(argv[3]);
	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	ward_spec_free(spec);
	printf("%d jobs, %d failed\n", jobs, atomic_load(&failed));
	return atomic_load(&failed) ? 1 : 0;
}
