//! The policy for slow readers, with readers that read exactly as much as a test lets them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Takes as many bytes as it is let.
#[derive(Clone, Default)]
struct Reader(Arc<(Mutex<Reading>, Condvar)>);

#[derive(Default)]
struct Reading {
    /// The number of bytes that it still takes.
    appetite: usize,
    has_gone: bool,
    read: Vec<u8>,
}

impl Reader {
    fn read(&self, count: usize) {
        let (reading, changed) = &*self.0;
        reading.lock().appetite = count;
        changed.notify_all();
    }

    fn go_away(&self) {
        let (reading, changed) = &*self.0;
        reading.lock().has_gone = true;
        changed.notify_all();
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.0.lock().read.clone()).unwrap()
    }
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (reading, changed) = &*self.0;
        let mut reading = reading.lock();
        while reading.appetite == 0 && !reading.has_gone {
            changed.wait(&mut reading);
        }
        if reading.has_gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(reading.appetite);
        reading.appetite -= count;
        reading.read.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Reader {}

fn queue(reader: &Reader) -> OutputQueue {
    OutputQueue::new(reader.clone(), Box::new(tempfile::tempfile))
}

fn kept_in_memory(queue: &OutputQueue) -> usize {
    queue.inner.state.lock().recent.capacity() + queue.line.lock().capacity()
}

#[tokio::test]
async fn all_that_a_reader_left_unread_comes_later_in_order_from_bounded_memory() {
    let reader = Reader::default();
    let queue = queue(&reader);
    let mut expected = String::new();
    for number in 0..60_000 {
        let event = serde_json::json!({"number": number, "text": "a piece of an answer"});
        queue.json_line(&event);
        expected.extend([event.to_string().as_str(), "\n"]);
        assert!(kept_in_memory(&queue) <= 3 * MOST_IN_MEMORY);
    }
    assert!(expected.len() > 10 * MOST_IN_MEMORY);
    reader.read(usize::MAX);
    queue.finish().await.unwrap();
    assert!(reader.text() == expected);
}

#[tokio::test]
async fn what_comes_while_a_reader_catches_up_stays_in_its_place() {
    let reader = Reader::default();
    let queue = queue(&reader);
    let mut expected = String::new();
    // Pieces smaller and larger than what memory takes, and a reader that stops in the middle of them.
    for round in 0..300_usize {
        let piece = format!("{round}:{}\n", "x".repeat((round % 7) * MOST_IN_MEMORY / 5));
        queue.write(piece.as_bytes());
        expected.push_str(&piece);
        reader.read(round * 1000);
    }
    reader.read(usize::MAX);
    queue.finish().await.unwrap();
    assert!(reader.text() == expected);
}

#[tokio::test]
async fn a_reader_that_reads_needs_no_disk() {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    let reader = Reader::default();
    reader.read(usize::MAX);
    let open = || {
        OPENED.fetch_add(1, Ordering::Relaxed);
        tempfile::tempfile()
    };
    let queue = OutputQueue::new(reader.clone(), Box::new(open));
    queue.write(&vec![b'x'; 5 * MOST_IN_MEMORY]);
    queue.finish().await.unwrap();
    assert_eq!(reader.text().len(), 5 * MOST_IN_MEMORY);
    assert_eq!(OPENED.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn finish_waits_for_the_reader_and_nothing_is_taken_after_it() {
    let reader = Reader::default();
    let queue = queue(&reader);
    queue.write(b"answer");
    {
        let mut finish = std::pin::pin!(queue.finish());
        let mut poll = || {
            let waker = std::task::Waker::noop();
            finish.as_mut().poll(&mut std::task::Context::from_waker(waker))
        };
        assert!(poll().is_pending());
        reader.read(3);
        assert!(poll().is_pending());
    }
    queue.write(b" and more");
    reader.read(usize::MAX);
    queue.finish().await.unwrap();
    assert_eq!(reader.text(), "answer");
    queue.finish().await.unwrap();
}

#[tokio::test]
async fn where_nothing_was_written_nothing_is_waited_for() {
    queue(&Reader::default()).finish().await.unwrap();
}

#[tokio::test]
async fn a_reader_that_goes_away_is_noticed_and_gets_nothing_more() {
    let reader = Reader::default();
    let queue = queue(&reader);
    for _ in 0..10 {
        queue.write(&vec![b'x'; MOST_IN_MEMORY]);
    }
    reader.go_away();
    queue.failed().await;
    queue.write(b"more");
    assert_eq!(kept_in_memory(&queue), 0);
    assert_eq!(queue.inner.state.lock().spill.unread(), 0);
    assert_eq!(queue.finish().await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_never_reads_is_waited_for_until_the_program_is_to_end() {
    let reader = Reader::default();
    let queue = queue(&reader);
    queue.write(b"answer");
    let hour = tokio::time::timeout(Duration::from_hours(1), queue.finish()).await;
    assert!(hour.is_err(), "a reader may take its time");
    queue.end_soon();
    let started = tokio::time::Instant::now();
    assert_eq!(queue.finish().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(started.elapsed(), LAST_PATIENCE);
    reader.go_away();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_told_to_end_while_it_finishes_ends() {
    let reader = Reader::default();
    let queue = queue(&reader);
    queue.write(b"answer");
    let (finished, ()) = tokio::join!(queue.finish(), async { queue.end_soon() });
    assert_eq!(finished.unwrap_err().kind(), ErrorKind::TimedOut);
    reader.go_away();
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_a_failure_and_no_loss_in_silence() {
    let reader = Reader::default();
    let full = || Err(io::Error::from(ErrorKind::StorageFull));
    let queue = OutputQueue::new(reader.clone(), Box::new(full));
    queue.write(b"x");
    queue.write(&vec![b'x'; 2 * MOST_IN_MEMORY]);
    queue.failed().await;
    let error = queue.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("its reader is behind"), "{error}");
    reader.go_away();
}

#[tokio::test]
async fn there_is_room_again_when_the_reader_has_read_or_gone() {
    for goes in [false, true] {
        let reader = Reader::default();
        let queue = queue(&reader);
        let piece = vec![b'x'; 1 << 24];
        assert!(queue.wait_for_room().is_none());
        while queue.inner.state.lock().spill.unread() < MOST_ON_DISK {
            assert!(queue.wait_for_room().is_none());
            queue.write(&piece);
        }
        let mut room = queue.wait_for_room().unwrap();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(room.as_mut().poll(&mut context).is_pending());
        if goes {
            reader.go_away();
        } else {
            // More than the writer may have in its hands.
            reader.read(3 << 24);
        }
        room.await;
        reader.go_away();
    }
}

/// Has room for so many writes, and then for none until it is asked again.
struct Quick {
    reader: Reader,
    room: usize,
}

impl Write for Quick {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reader.write(bytes.get(..2).unwrap_or(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Quick {
    fn is_ready(&mut self) -> bool {
        let is_ready = self.room > 0;
        self.room = self.room.saturating_sub(1);
        is_ready
    }
}

#[tokio::test]
async fn what_the_reader_has_room_for_is_written_at_once_and_the_rest_in_order_behind_it() {
    let reader = Reader::default();
    reader.read(5);
    let sink = Quick { reader: reader.clone(), room: 2 };
    let queue = OutputQueue::new(sink, Box::new(tempfile::tempfile));
    queue.write(b"abc");
    assert_eq!(reader.text(), "abc", "without another thread");
    queue.write(b"defg");
    queue.write(b"hi");
    reader.read(usize::MAX);
    queue.finish().await.unwrap();
    assert_eq!(reader.text(), "abcdefghi");
}
