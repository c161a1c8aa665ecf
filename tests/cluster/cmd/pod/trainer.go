package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	step      = 200 * time.Millisecond
	save      = 2 * time.Second
	saveEvery = 10 * time.Minute
	terminate = 128 + int(syscall.SIGTERM)
	notice    = "/etc/device-health/notice"
)

// train computes in steps, from the last checkpoint in the folder on. What it does when its Pod is told of its eviction depends on its manner:
//
//	(none)   it goes on: nobody listens
//	listen   it saves, computes no further, and ends itself once that is safe
//	wait     it saves, computes no further, and waits for its end
//	hang     it does nothing any more
//	desert   it ends itself at once without having saved, and begins anew in the same Pod, as if nobody had said anything
//
// It keeps in the folder: `step`, the checkpoint; `now`, the steps that are done; `reached`, those at its end; `again`, when as many were done again.
func train(folder, manner string) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	done := read(filepath.Join(folder, "step"))
	reached := read(filepath.Join(folder, "reached"))
	saved, savedAt := done, time.Now()
	leave := func() {
		write(filepath.Join(folder, "reached"), strconv.Itoa(max(done, reached)))
		os.Exit(terminate)
	}
	wait := func(span time.Duration) {
		select {
		case <-terminated:
			leave()
		case <-time.After(span):
		}
	}
	if manner == "desert" && reached > 0 {
		manner = ""
	}
	for {
		if reached > 0 && done >= reached {
			write(filepath.Join(folder, "again"), time.Now().Format(time.RFC3339Nano))
			reached = 0
		}
		var told, safe bool
		if manner != "" {
			told, safe = ask()
		}
		switch {
		case told && manner == "desert":
			leave()
		case told && manner == "hang":
			wait(step)
		case told && saved == done && safe && manner == "listen":
			leave()
		case told && saved == done:
			wait(step)
		case told || time.Since(savedAt) >= saveEvery:
			wait(save)
			write(filepath.Join(folder, "step"), strconv.Itoa(done))
			saved, savedAt = done, time.Now()
		default:
			wait(step)
			done++
			write(filepath.Join(folder, "now"), strconv.Itoa(done))
		}
	}
}

// ask reads the notice: of an eviction, and whether the program may end itself.
func ask() (told, safe bool) {
	text, err := os.ReadFile(notice)
	if err != nil {
		return false, false
	}
	var said struct {
		V            int
		Action, Exit string
	}
	if json.Unmarshal(text, &said) != nil || said.V != 1 {
		return false, false
	}
	return said.Action == "evict", said.Exit == "safe"
}

func read(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	number, _ := strconv.Atoi(string(text))
	return number
}

// write replaces the file as a whole.
func write(path, text string) {
	if os.WriteFile(path+".new", []byte(text), 0o644) == nil {
		_ = os.Rename(path+".new", path)
	}
}
