// Reads a directory by the standard library of Go. src/programs.rs describes standard input and output.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	paths := os.Args[1:]
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var times, turn int
		_, err := fmt.Sscan(input.Text(), &times, &turn)
		must(err)
		if times == 0 {
			var names []byte
			list, err := os.ReadDir(paths[turn])
			must(err)
			for _, entry := range list {
				names = append(append(names, entry.Name()...), 0)
			}
			fmt.Println(len(names))
			os.Stdout.Write(names)
			continue
		}
		bytes := 0
		begin := time.Now()
		for range times {
			list, err := os.ReadDir(paths[turn])
			must(err)
			bytes = 0
			for _, entry := range list {
				bytes += len(entry.Name())
			}
			if turn++; turn == len(paths) {
				turn = 0
			}
		}
		fmt.Println(time.Since(begin).Nanoseconds(), bytes)
	}
}
