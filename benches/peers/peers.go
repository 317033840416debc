// Reads a directory in two of Go's ways. src/programs.rs says what goes over standard input and output.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"time"
)

// entries lends the names of a directory: each stays in the buffer only until the next is asked for.
type entries struct {
	fd     int
	buffer []byte
	unread []byte
	err    error
}

// next answers nil at the end and after an error.
func (e *entries) next() []byte {
	for {
		if len(e.unread) == 0 {
			n, err := syscall.ReadDirent(e.fd, e.buffer)
			if n <= 0 {
				e.err = err
				return nil
			}
			e.unread = e.buffer[:n]
		}
		size := binary.NativeEndian.Uint16(e.unread[16:])
		name := e.unread[19:size]
		e.unread = e.unread[size:]
		name = name[:bytes.IndexByte(name, 0)]
		if string(name) != "." && string(name) != ".." {
			return name
		}
	}
}

var buffer = make([]byte, 32<<10)

func lending(path string, take func([]byte)) error {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	entries := entries{fd: fd, buffer: buffer}
	for name := entries.next(); name != nil; name = entries.next() {
		take(name)
	}
	return entries.err
}

func lendingBytes(path string) (bytes int, err error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	entries := entries{fd: fd, buffer: buffer}
	for name := entries.next(); name != nil; name = entries.next() {
		bytes += len(name)
	}
	syscall.Close(fd)
	return bytes, entries.err
}

func readDir(path string, take func([]byte)) error {
	list, err := os.ReadDir(path)
	for _, entry := range list {
		take([]byte(entry.Name()))
	}
	return err
}

func readDirBytes(path string) (bytes int, err error) {
	list, err := os.ReadDir(path)
	for _, entry := range list {
		bytes += len(entry.Name())
	}
	return bytes, err
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	visit, count := lending, lendingBytes
	if os.Args[1] == "ReadDir" {
		visit, count = readDir, readDirBytes
	}
	paths := os.Args[2:]
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var times, turn int
		_, err := fmt.Sscan(input.Text(), &times, &turn)
		must(err)
		if times == 0 {
			var names []byte
			must(visit(paths[turn], func(name []byte) { names = append(append(names, name...), 0) }))
			fmt.Println(len(names))
			os.Stdout.Write(names)
			continue
		}
		sum := 0
		begin := time.Now()
		for range times {
			sum, err = count(paths[turn])
			must(err)
			if turn++; turn == len(paths) {
				turn = 0
			}
		}
		fmt.Println(time.Since(begin).Nanoseconds(), sum)
	}
}
