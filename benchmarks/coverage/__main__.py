from benchmarks.coverage import main

main()
