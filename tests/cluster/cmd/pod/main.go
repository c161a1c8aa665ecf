// Command pod is the only program in the images of these tests: the sandbox's process, and every container's.
//
//	pod                  wait for SIGTERM, then exit 143, as a program would that does not know it (0 would complete a Job)
//	pod obey-term        wait for SIGTERM, then exit 0, as a program would that has saved its work
//	pod ignore-term      never end by itself
//	pod exit CODE        end at once
//	pod train FOLDER     compute, and keep checkpoints in the folder (trainer.go)
//	pod train FOLDER MANNER   the same, and heed the notice of an eviction in one of the manners of trainer.go
//
// SIGUSR2 ends what waits with 0: its work is done. From when it hears signals its name is "ready", for realnode to see: a container is called
// running before.
package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	wanted := "wait"
	if len(os.Args) > 1 {
		wanted = os.Args[1]
	}
	signals := make(chan os.Signal, 1)
	switch wanted {
	case "wait", "obey-term":
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	case "train":
		manner := ""
		if len(os.Args) > 3 {
			manner = os.Args[3]
		}
		train(os.Args[2], manner)
	case "exit":
		code, err := strconv.Atoi(os.Args[2])
		if err != nil {
			code = 2
		}
		os.Exit(code)
	default:
		os.Exit(2)
	}
	// A goroutine that waits for a signal that nobody sends is no deadlock for the Go runtime.
	signal.Notify(signals, syscall.SIGUSR2)
	_ = os.WriteFile("/proc/self/comm", []byte("ready"), 0)
	if <-signals == syscall.SIGUSR2 || wanted == "obey-term" {
		os.Exit(0)
	}
	os.Exit(128 + int(syscall.SIGTERM))
}
