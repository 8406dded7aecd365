//! Several fronts of one session: each is shown every event, in the order in which they are given.

use std::sync::Arc;

use centurion_engine::{RoomFuture, View};
use centurion_protocol::sdk::Event;
use futures_util::future::join_all;
use parking_lot::Mutex;

use crate::{FinishFuture, Front};

/// The fronts of a session. With none of them nothing is shown, and everything is finished.
pub struct Fronts {
    fronts: Vec<Arc<dyn Front>>,
    /// Held while one event is shown: all fronts see the same order.
    order: Mutex<()>,
}

impl Fronts {
    pub fn new(fronts: impl IntoIterator<Item = Arc<dyn Front>>) -> Self {
        Self { fronts: fronts.into_iter().collect(), order: Mutex::default() }
    }
}

impl View for Fronts {
    fn show(&self, event: &Event) {
        let _order = self.order.lock();
        for front in &self.fronts {
            front.show(event);
        }
    }

    fn wait_for_agents(&self) {
        for front in &self.fronts {
            front.wait_for_agents();
        }
    }

    /// Agents wait for the slowest reader: what one was promised is not kept without bound.
    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        let waits: Vec<RoomFuture<'_>> =
            self.fronts.iter().filter_map(|front| front.wait_for_room()).collect();
        (!waits.is_empty())
            .then(|| -> RoomFuture<'_> { Box::pin(async move { drop(join_all(waits).await) }) })
    }
}

impl Front for Fronts {
    /// All are finished at the same time. `Err` is the first failure.
    fn finish(&self) -> FinishFuture<'_> {
        let finishing = join_all(self.fronts.iter().map(|front| front.finish()));
        Box::pin(async move { finishing.await.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use centurion_protocol::sdk::{EventBody, System};
    use centurion_protocol::{SystemWorld, World as _};
    use tokio::sync::Semaphore;

    use super::*;

    /// A front that says what happens to it, and has room and ends when it is told to.
    #[derive(Default)]
    struct Reader {
        name: &'static str,
        told: Arc<Mutex<Vec<String>>>,
        room: Option<Semaphore>,
        fails: bool,
    }

    impl Reader {
        fn tell(&self, what: &str) {
            self.told.lock().push(format!("{} {what}", self.name));
        }
    }

    impl View for Reader {
        fn show(&self, _: &Event) {
            self.tell("event");
        }

        fn wait_for_agents(&self) {
            self.tell("waits");
        }

        fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
            let room = self.room.as_ref()?;
            Some(Box::pin(async { drop(room.acquire().await) }))
        }
    }

    impl Front for Reader {
        fn finish(&self) -> FinishFuture<'_> {
            self.tell("ends");
            let fails = self.fails;
            Box::pin(
                async move { if fails { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) } },
            )
        }
    }

    fn event() -> Event {
        let body = EventBody::System(System::SessionStateChanged { state: "idle" });
        Event { body, session_id: SystemWorld.session_id(), uuid: SystemWorld.record_id() }
    }

    #[tokio::test]
    async fn each_front_is_shown_everything_and_finished_whatever_becomes_of_another() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let reader = |name, fails| Reader { name, fails, told: Arc::clone(&told), room: None };
        let fronts: [Arc<dyn Front>; 3] = [
            Arc::new(reader("a", false)),
            Arc::new(reader("b", true)),
            Arc::new(reader("c", false)),
        ];
        let fronts = Fronts::new(fronts);
        fronts.show(&event());
        fronts.wait_for_agents();
        assert!(fronts.wait_for_room().is_none());
        let failed = fronts.finish().await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::BrokenPipe);
        let expected: Vec<String> = ["event", "waits", "ends"]
            .iter()
            .flat_map(|what| ["a", "b", "c"].map(|name| format!("{name} {what}")))
            .collect();
        assert_eq!(*told.lock(), expected);
        assert!(Fronts::new([]).finish().await.is_ok());
    }

    #[tokio::test]
    async fn agents_wait_until_the_slowest_reader_has_room() {
        let readers = [(); 2]
            .map(|()| Arc::new(Reader { room: Some(Semaphore::new(0)), ..Reader::default() }));
        let fronts = Fronts::new(readers.iter().map(|it| Arc::clone(it) as Arc<dyn Front>));
        let mut wait = fronts.wait_for_room().unwrap();
        for reader in &readers {
            assert!(futures_util::poll!(&mut wait).is_pending());
            reader.room.as_ref().unwrap().add_permits(1);
        }
        wait.await;
    }
}
