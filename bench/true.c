/* The least command: what a start costs is measured with it, so it does nothing and links nothing
 * at run time. */
int main(void)
{
	return 0;
}
