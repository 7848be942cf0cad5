//! Registered services: description, health and load.

use std::collections::BTreeMap;

use crate::proto::v1::{GetServiceStatsResponse, ServiceInfo, ServiceStatus, ServiceType};
use crate::refusal::Refusal;

const MAX_CONCURRENT: i32 = 1 << 20;

/// All services by name. The load is that of this process: nothing is under way after a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    all: BTreeMap<String, ServiceInfo>,
}

/// Refuses a description that no service can have.
pub fn check(service: &ServiceInfo) -> Result<(), Refusal> {
    if service.name.is_empty() {
        return Err(Refusal::invalid("Give the service a name."));
    }
    if service.r#type() == ServiceType::Unspecified {
        return Err(Refusal::invalid(
            "Give the service a type, such as SERVICE_TYPE_WORKER.",
        ));
    }
    if ServiceStatus::try_from(service.status).is_err() {
        return Err(Refusal::invalid(
            "status is none of the enumeration ServiceStatus.",
        ));
    }
    if !(1..=MAX_CONCURRENT).contains(&service.max_concurrent) {
        return Err(Refusal::invalid(format!(
            "max_concurrent is not between 1 and {MAX_CONCURRENT}."
        )));
    }
    if service.current_load != 0 || service.last_health_check_us != 0 || service.workers != 0 {
        return Err(Refusal::invalid(
            "current_load, last_health_check_us and workers are the kernel's: leave them out.",
        ));
    }
    Ok(())
}

impl Registry {
    /// Registers a service that was checked, or replaces its description.
    pub fn register(&mut self, service: ServiceInfo, now_us: i64) -> &ServiceInfo {
        let before = self.all.remove(&service.name);
        let mut service = service;
        if service.status() == ServiceStatus::Unspecified {
            service.set_status(ServiceStatus::Unknown);
        } else {
            service.last_health_check_us = now_us;
        }
        if let Some(before) = before {
            service.current_load = before.current_load;
            service.workers = before.workers;
        }
        self.all.entry(service.name.clone()).or_insert(service)
    }

    /// Adds a service as it was, without load.
    pub fn restore(&mut self, service: ServiceInfo) {
        let idle = ServiceInfo {
            current_load: 0,
            workers: 0,
            ..service
        };
        self.all.insert(idle.name.clone(), idle);
    }

    pub fn unregister(&mut self, name: &str) -> Result<(), Refusal> {
        let load = self.get(name)?.current_load;
        if load > 0 {
            return Err(Refusal::precondition(format!(
                "The service \"{name}\" has {load} requests under way. Set it unhealthy and wait for them."
            )));
        }
        self.all.remove(name);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Result<&ServiceInfo, Refusal> {
        self.all.get(name).ok_or_else(|| unknown(name))
    }

    pub fn list(&self) -> impl Iterator<Item = &ServiceInfo> {
        self.all.values()
    }

    pub fn set_health(
        &mut self,
        name: &str,
        status: ServiceStatus,
        now_us: i64,
    ) -> Result<&ServiceInfo, Refusal> {
        if status == ServiceStatus::Unspecified {
            return Err(Refusal::invalid("Name a status, such as SERVICE_STATUS_HEALTHY."));
        }
        let service = self.all.get_mut(name).ok_or_else(|| unknown(name))?;
        service.set_status(status);
        service.last_health_check_us = now_us;
        Ok(service)
    }

    /// Returns why a service takes no further request; None where it takes one.
    pub fn reason_against(&self, name: &str) -> Result<Option<String>, Refusal> {
        let service = self.get(name)?;
        let (load, most) = (service.current_load, places(service));
        Ok(match service.status() {
            ServiceStatus::Unhealthy => Some(format!("The service \"{name}\" is unhealthy.")),
            _ if load >= most => Some(format!(
                "The service \"{name}\" has {load} of {most} requests under way."
            )),
            _ => None,
        })
    }

    /// Takes a place of a service.
    pub fn acquire(&mut self, name: &str) -> Result<&ServiceInfo, Refusal> {
        if let Some(reason) = self.reason_against(name)? {
            return Err(Refusal::exhausted(reason));
        }
        self.add_load(name, 1)
    }

    /// Gives a place back.
    pub fn release(&mut self, name: &str) -> Result<&ServiceInfo, Refusal> {
        if self.get(name)?.current_load == 0 {
            return Err(Refusal::precondition(format!(
                "The service \"{name}\" has no request under way."
            )));
        }
        self.add_load(name, -1)
    }

    fn add_load(&mut self, name: &str, by: i32) -> Result<&ServiceInfo, Refusal> {
        let service = self.all.get_mut(name).ok_or_else(|| unknown(name))?;
        service.current_load += by;
        Ok(service)
    }

    /// Sets the number of workers with a stream.
    pub fn set_workers(&mut self, name: &str, workers: usize) {
        if let Some(service) = self.all.get_mut(name) {
            service.workers = i32::try_from(workers).unwrap_or(i32::MAX);
        }
    }

    /// Returns the least loaded service for a model.
    pub fn for_model(&self, model: &str) -> Result<&str, Refusal> {
        if model.is_empty() {
            return Err(Refusal::invalid("Name the model."));
        }
        let mut known = self
            .list()
            .filter(|service| service.r#type() == ServiceType::Inference)
            .filter(|service| service.capabilities.iter().any(|each| each == model))
            .peekable();
        if known.peek().is_none() {
            return Err(Refusal::not_found(format!(
                "No service of type inference has the capability \"{model}\"."
            )));
        }
        known
            .filter(|service| {
                service.workers > 0 && self.reason_against(&service.name).is_ok_and(|why| why.is_none())
            })
            .min_by_key(|service| (service.current_load, service.name.as_str()))
            .map(|service| service.name.as_str())
            .ok_or_else(|| Refusal::unavailable(format!("No service for \"{model}\" takes a request now.")))
    }

    pub fn stats(&self) -> GetServiceStatsResponse {
        let mut stats = GetServiceStatsResponse {
            total_services: i64::try_from(self.all.len()).unwrap_or(i64::MAX),
            ..GetServiceStatsResponse::default()
        };
        for service in self.list() {
            *stats
                .by_type
                .entry(type_name(service.r#type()).to_owned())
                .or_default() += 1;
            *stats
                .by_status
                .entry(status_name(service.status()).to_owned())
                .or_default() += 1;
            stats.total_load += i64::from(service.current_load);
            stats.total_capacity += i64::from(places(service));
        }
        stats
    }
}

/// Returns how many requests a service takes at the same time.
fn places(service: &ServiceInfo) -> i32 {
    match service.status() {
        ServiceStatus::Unhealthy => 0,
        ServiceStatus::Degraded => (service.max_concurrent / 2).max(1),
        _ => service.max_concurrent,
    }
}

fn unknown(name: &str) -> Refusal {
    if name.is_empty() {
        return Refusal::invalid("Name the service.");
    }
    Refusal::not_found(format!("There is no service \"{name}\"."))
}

pub fn type_name(each: ServiceType) -> &'static str {
    match each {
        ServiceType::Unspecified => "unspecified",
        ServiceType::Flow => "flow",
        ServiceType::Worker => "worker",
        ServiceType::Vertical => "vertical",
        ServiceType::Inference => "inference",
    }
}

fn status_name(each: ServiceStatus) -> &'static str {
    match each {
        ServiceStatus::Unspecified => "unspecified",
        ServiceStatus::Healthy => "healthy",
        ServiceStatus::Degraded => "degraded",
        ServiceStatus::Unhealthy => "unhealthy",
        ServiceStatus::Unknown => "unknown",
    }
}
